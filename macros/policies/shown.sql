{% macro shown(text) -%}
    {#- Quote what came in a message: escaped, and cut after 80 characters. -#}
    {{ "%r" % text[:80] }}{{ "..." if text | length > 80 }}
{%- endmacro %}
