{% macro no_rows(columns) -%}
    {#-
        A query with columns and without rows, which reads nothing: what there is to check where nothing is new. Its first
        line tells the materialization `outbox_checked` to make a view of it.

        Arguments:
            columns: mapping of name to type
    -#}
-- outbox: nothing new
select
    {%- for name, type in columns.items() %}
    cast(null as {{ type }}) as {{ name }}{{ "," if not loop.last }}
    {%- endfor %}
where false
{%- endmacro %}
