{% macro regex_char(char) -%}
    {#- One character of a regular expression that stands for itself: ASCII punctuation is escaped, as in core/globs.py. -#}
    {%- set plain = char.isalnum() or char.isspace() or not char.isprintable() or not char.isascii() -%}
    {{- char if plain else "\\" ~ char -}}
{%- endmacro %}
