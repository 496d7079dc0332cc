{% macro task_target_counts(targets, most) -%}
    {#-
        How many tasks a request about workflows gets, and how many not, and why.

        Arguments:
            targets: relation, task_targets
            most: rows at most
        Columns: workflow, task, third_party, state, refusal and tasks; of all rows: all_tasks, that the request gets, all_targets,
            with those that it does not get, and all_rows, how many there are.
    -#}
    with counts as (
        select
            workflow,
            task,
            third_party,
            state,
            refusal,
            count(*) as tasks
        from {{ targets }}
        group by workflow, task, third_party, state, refusal
    )

    select
        *,
        sum(if(refusal is null, tasks, 0)) over () as all_tasks,
        sum(tasks) over () as all_targets,
        count(*) over () as all_rows
    from counts
    order by refusal is not null, tasks desc, workflow, task, third_party, state, refusal
    limit {{ most }}
{%- endmacro %}
