{% macro number_the_rows(rows) -%}
    {#-
        Post-hook of the policy seed: replace the loaded table by the same rows with their position in the file.

        The first row that matches an event type wins, and a table has no order of its own.

        Arguments:
            rows: agate table, `load_agate_table()`
    -#}
    {%- if execute -%}
    {%- set columns = rows.column_names -%}
    create or replace table {{ this }} using delta as
    select *
    from values
    {%- for row in rows.rows %}
        (
            {{ loop.index }}
            {%- for value in row.values() -%}
                , {% if value is none %}cast(null as string){% else %}{{ delta_outbox.text_literal(value) }}{% endif %}
            {%- endfor -%}
        ){{ "," if not loop.last }}
    {%- endfor %}
    as policy (position, {{ columns | join(", ") }})
    {%- endif -%}
{%- endmacro %}
