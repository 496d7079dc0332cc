{% macro workflow_seconds(cell) -%}
    {#- The number of seconds in a cell, none if it is no number. -#}
    {%- if modules.re.fullmatch("[0-9]{1,12}(\\.[0-9]{1,6})?", cell) -%}
        {{- return((cell | float) + 0.0) -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}
