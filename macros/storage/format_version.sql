{% macro format_version() -%}
    {#- The version of the logs' format. A newer one found in a table is refused. -#}
    {{ return(2) }}
{%- endmacro %}
