{% macro filled(text, values) -%}
    {#-
        An SQL expression: a text with its names in double underscores replaced, as `Statements.fill` does in Python.

        Arguments:
            text: SQL expression of the text
            values: mapping of name to the SQL expression of what stands there, in order
    -#}
    {%- for _ in values -%} replace( {%- endfor -%}
    {{ text }}
    {%- for name, value in values.items() -%}
    , '__{{ name }}__', {{ value }})
    {%- endfor -%}
{%- endmacro %}
