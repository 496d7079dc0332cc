{% macro workflows_in_force() -%}
    {#-
        The SQL of the model `railway_in_force`, which `outbox workflow build` writes into a project of the user's own: the
        workflows of the newest numbered write of `workflows`, one row each. The materialization `outbox_workflows` checks
        the rows of the four seeds, on which the model depends, and makes that plan before.
    -#}
    {%- set columns = delta_outbox.workflow_columns()["railway_workflows"] -%}
    {%- for seed in delta_outbox.workflow_columns() -%} {%- do ref(seed) -%} {%- endfor -%}
    with in_force as (
        {{ delta_outbox.rows_in_force("railway_workflows") | indent(8) }}
    )

    select
        {% for name in columns -%} {{ name }}, {% endfor %}
        number,
        planned_at,
        planned_by
    from in_force
{%- endmacro %}
