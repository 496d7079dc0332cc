{% macro repeated_delivery() -%}
    {#- What is wrong where an append holds a delivery twice. -#}
    case when repeats_append then 'a delivery twice in one append' end
{%- endmacro %}
