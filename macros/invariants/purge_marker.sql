{% macro purge_marker() -%}
    {#- How the user metadata of a purge's commits begins. A DELETE without it is a violation of `rewritten_logs`. -#}
    {{ return("outbox/purge/") }}
{%- endmacro %}
