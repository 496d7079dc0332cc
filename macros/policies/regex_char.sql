{% macro regex_char(char) -%}
    {#-
        One character of a regular expression that stands for itself: ASCII punctuation is escaped.

        twin: python/delta_outbox/core/globs.py::_escaped
    -#}
    {%- set plain = char.isalnum() or char.isspace() or not char.isprintable() or not char.isascii() -%}
    {{- char if plain else "\\" ~ char -}}
{%- endmacro %}
