{% macro purge_marker() -%}
    {#-
        How the user metadata of a purge's commits begins. A DELETE without it, or a MERGE that deletes, is a violation of `rewritten_logs`.

        twin: python/delta_outbox/operations/maintenance/removal.py::MARKER
    -#}
    {{ return("outbox/purge/") }}
{%- endmacro %}
