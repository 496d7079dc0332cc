{% macro no_changes(log) -%}
    {#- A source in the form of the change feed of a log, without rows: `table_changes` fails on a range that has not begun. -#}
    (select *, cast(0 as bigint) as _commit_version from {{ log }} where false)
{%- endmacro %}
