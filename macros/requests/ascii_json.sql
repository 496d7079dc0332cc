{% macro ascii_json(row, columns) -%}
    {#- Some columns of a row as JSON in ASCII, in which no control character is left. -#}
    {%- set shown = {} -%}
    {%- for name in columns -%}
        {%- do shown.update({name: row[name]}) -%}
    {%- endfor -%}
    {{ tojson(shown).replace("\x7f", "\\u007f") }}
{%- endmacro %}
