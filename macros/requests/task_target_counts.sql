{% macro task_target_counts(targets) -%}
    {#- How many tasks a request about workflows gets, and how many not, and why. Argument: relation, task_targets. -#}
    select
        workflow,
        task,
        third_party,
        state,
        refusal,
        count(*) as tasks
    from {{ targets }}
    group by workflow, task, third_party, state, refusal
    order by refusal is not null, tasks desc, workflow, task, third_party, state, refusal
    limit 100
{%- endmacro %}
