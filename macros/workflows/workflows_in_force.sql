{% macro workflows_in_force() -%}
    {#-
        The SQL of the model `railway_in_force`, which `outbox workflow build` writes into a project of the user's own: the
        workflows of the newest numbered write of `workflows`, one row each. The materialization `outbox_workflows` checks
        the rows of the four seeds, on which the model depends, and makes that plan before.
    -#}
    {%- set columns = delta_outbox.workflow_columns()["railway_workflows"] -%}
    {%- for seed in delta_outbox.workflow_columns() -%} {%- do ref(seed) -%} {%- endfor -%}
    with newest as (
        select
            max(number) as number,
            max_by(plan, number) as plan,
            max_by(planned_at, number) as planned_at,
            max_by(planned_by, number) as planned_by
        from {{ source("outbox", "outbox_progress") }}
        where writer = 'workflows'
    )

    select
        {% for name in columns -%} w.{{ name }}, {% endfor %}
        n.number,
        n.planned_at,
        n.planned_by
    from newest as n
    lateral view inline(
        from_json(
            get_json_object(n.plan, '$.rows.railway_workflows'),
            'array<struct<{{ columns | join(":string,") }}:string>>'
        )
    ) w as {{ columns | join(", ") }}
{%- endmacro %}
