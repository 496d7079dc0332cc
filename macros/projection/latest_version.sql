{% macro latest_version(log) -%}
    {#- The latest commit version of a log. -#}
    {{ return((run_query("describe history " ~ log ~ " limit 1") | list)[0]["version"]) }}
{%- endmacro %}
