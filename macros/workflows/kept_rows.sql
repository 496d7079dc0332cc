{% macro kept_rows(seed) -%}
    {#-
        The rows of a seed of workflows as the numbered writes of `workflows` keep them.

        Arguments:
            seed: name of the seed
        Columns: number, planned_at and planned_by of the numbered write, and those of the seed, all text.
    -#}
    {%- set columns = delta_outbox.workflow_columns()[seed] -%}
    select
        p.number,
        p.planned_at,
        p.planned_by,
        {{ columns | join(",\n        ") }}
    from {{ source("outbox", "outbox_progress") }} as p
    lateral view inline(
        from_json(get_json_object(p.plan, '$.rows.{{ seed }}'), 'array<struct<{{ columns | join(":string,") }}:string>>')
    ) w as {{ columns | join(", ") }}
    where p.writer = 'workflows'
{%- endmacro %}
