{% macro text_literal(value) -%}
    {#- The one way a value reaches SQL text: a string literal with quotes and backslashes escaped. -#}
    {%- set escaped = (value | string).replace("\\", "\\\\").replace("'", "\\'") -%}
    '{{ escaped }}'
{%- endmacro %}
