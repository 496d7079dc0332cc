{% macro text_literal(value) -%}
    {#-
        The one way a value reaches SQL text: a string literal with quotes and backslashes escaped, and `${`, which Spark
        would replace by variables of its own (`${env:HOME}`) before it reads the text.

        twin: python/delta_outbox/core/literals.py::text_literal
    -#}
    {%- set escaped = (value | string).replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") -%}
    '{{ escaped }}'
{%- endmacro %}
