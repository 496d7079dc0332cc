{% macro rows_of_derivation(list, columns) -%}
    {#-
        What the numbered writes of `derived_events` keep beside the events that they have written.

        Arguments:
            list: `ignored` or `stranded`
            columns: mapping of name to type
        Columns: number and planned_at of the numbered write, and those.
    -#}
    {%- set types = [] -%}
    {%- for name, type in columns.items() -%} {%- do types.append(name ~ ":" ~ type) -%} {%- endfor -%}
    select
        p.number,
        p.planned_at,
        {{ columns | join(",\n        ") }}
    from {{ source("outbox", "outbox_progress") }} as p
    lateral view inline(from_json(get_json_object(p.plan, '$.{{ list }}'), 'array<struct<{{ types | join(",") }}>>')) w
        as {{ columns | join(", ") }}
    where
        p.writer = 'derived_events'
        {#- Most have none: to look for this costs far less than to read the JSON of all that there ever were. #}
        and not contains(p.plan, '"{{ list }}": []')
{%- endmacro %}
