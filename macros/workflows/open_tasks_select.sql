{% macro open_tasks_select(state) -%}
    {#-
        How many instances stand at each task, or are about to go on from there: number of the numbered write of `workflows` by
        which they go, workflow, task and instances. Those that an operator has cancelled do not count; of those that go on
        elsewhere, it counts where.

        Arguments:
            state: relation, the projection
    -#}
    with deliveries as (
        {{ delta_outbox.task_deliveries(state) | indent(8) }}
    ),

    open_deliveries as (
        select * from deliveries
        where state in ('PENDING', 'CLAIMED')
    ),

    tasks as (
        {{ delta_outbox.tasks_of("open_deliveries") | indent(8) }}
    ),

    moves as (
        {{ delta_outbox.moved_tasks() | indent(8) }}
    ),

    places as (
        select
            coalesce(m.to_plan, t.plan) as number,
            t.workflow,
            coalesce(m.to_task, m.late_task, t.task) as task
        from tasks as t
        inner join open_deliveries as d
            on
                t.task_id = d.event_id
                and t.arrival = d.arrival
        left join moves as m
            on
                d.kill_command_id = m.command_id
                and t.task_id = m.event_id
                and t.arrival = m.arrival
        where
            d.kill_command_id is null
            or m.command_id is not null
    )

    select
        number,
        workflow,
        task,
        count(*) as instances
    from places
    group by number, workflow, task
    order by number, workflow, task
{%- endmacro %}
