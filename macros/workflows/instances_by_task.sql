{% macro instances_by_task(workflow, tasks, instances=none, task_rows=none) -%}
    {#-
        The instances of a workflow, a row each, with a column for each of its tasks: the outcome of its last visit that has
        ended; null if none has. Where the instance stands, `task` and `state` say.

        Arguments:
            workflow: its name
            tasks: dict, the name of each task and that of its column
            instances: relation, the model workflow_instances
            task_rows: relation, the model workflow_tasks
    -#}
    with outcomes as (
        select
            instance_key,
            task,
            max_by(outcome, visit) as outcome
        from {{ task_rows or ref("delta_outbox", "workflow_tasks") }}
        where workflow = '{{ workflow }}' and outcome is not null
        group by instance_key, task
    ),

    by_instance as (
        select
            instance_key,
            map_from_entries(collect_list(struct(task, outcome))) as outcome_of
        from outcomes
        group by instance_key
    )

    select
        i.instance,
        i.version,
        i.state,
        i.task,
        i.started_at,
        i.ended_at,
        i.exit,
        i.problem,
        i.instance_key
        {%- for task, column in tasks.items() %},
        b.outcome_of['{{ task }}'] as {{ column }}
        {%- endfor %}
    from {{ instances or ref("delta_outbox", "workflow_instances") }} as i
    left join by_instance as b on i.instance_key = b.instance_key
    where i.workflow = '{{ workflow }}'
{%- endmacro %}
