{% macro purge_marker() -%}
    {#- How the user metadata of a purge's commits begins. A DELETE without it, or a MERGE that deletes, is a violation of `rewritten_logs`. -#}
    {{ return("outbox/purge/") }}
{%- endmacro %}
