{% macro open_tasks_select(state) -%}
    {#-
        How many instances stand at each task: number of the numbered write of `workflows` by which they go, workflow, task and
        instances. Those that an operator has cancelled do not count.

        Arguments:
            state: relation, the projection
    -#}
    with deliveries as (
        {{ delta_outbox.task_deliveries(state) | indent(8) }}
    ),

    open_deliveries as (
        select * from deliveries
        where state in ('PENDING', 'CLAIMED') and kill_command_id is null
    ),

    tasks as (
        {{ delta_outbox.tasks_of("open_deliveries") | indent(8) }}
    )

    select
        plan as number,
        workflow,
        task,
        count(*) as instances
    from tasks
    group by plan, workflow, task
    order by number, workflow, task
{%- endmacro %}
