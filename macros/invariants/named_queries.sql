{% macro named_queries(queries) -%}
    {#- The head of a query that names others: `with name as (...), ...`. Argument: mapping of name to query, in order. -#}
    with
    {%- for name, query in queries.items() %}
    {{ name }} as (
        {{ query | indent(8) }}
    ){{ "," if not loop.last }}
    {%- endfor %}
{%- endmacro %}
