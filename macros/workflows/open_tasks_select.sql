{% macro open_tasks_select(state) -%}
    {#-
        How many instances stand at each task, or are about to go on from there, for it has ended. Those that an operator has
        cancelled do not count, nor those that are stranded; of those that go on elsewhere, it counts where.

        Arguments:
            state: relation, the projection
        Columns: number, of the numbered write of `workflows` by which they go, workflow, task, stands (1, or 0 where the task has
            ended) and instances.
    -#}
    with deliveries as (
        {{ delta_outbox.task_deliveries(state) | indent(8) }}
    ),

    stranded as (
        {{ delta_outbox.rows_of_derivation("stranded", {"task_id": "string"}) | indent(8) }}
    ),

    last_deliveries as (
        select * from deliveries
        where state in ('PENDING', 'CLAIMED')
        union all
        select * from ({{ delta_outbox.tasks_between("deliveries", state) | indent(8) }})
    ),

    tasks as (
        {{ delta_outbox.tasks_of("last_deliveries") | indent(8) }}
    ),

    last_tasks as (
        select t.* from ({{ delta_outbox.last_of_instances("tasks") | indent(8) }}) as t
        left anti join stranded as s on t.task_id = s.task_id
    ),

    moves as (
        {{ delta_outbox.moved_tasks() | indent(8) }}
    ),

    places as (
        select
            coalesce(m.to_plan, t.plan) as number,
            t.workflow,
            coalesce(m.to_task, m.late_task, t.task) as task,
            cast(m.command_id is not null or t.delivery_state in ('PENDING', 'CLAIMED') as int) as stands
        from last_tasks as t
        inner join last_deliveries as d
            on
                t.task_id = d.event_id
                and t.arrival = d.arrival
        -- Of a task that is DEAD, the first kill in the log is the one that has ended it.
        left join moves as m
            on
                t.task_id = m.event_id
                and t.arrival = m.arrival
                and (
                    d.state = 'DEAD'
                    or d.kill_command_id = m.command_id
                )
        where
            m.command_id is not null
            or (
                d.state <> 'DEAD'
                and d.kill_command_id is null
            )
    )

    select
        number,
        workflow,
        task,
        stands,
        count(*) as instances
    from places
    group by number, workflow, task, stands
    order by number, workflow, task, stands
{%- endmacro %}
