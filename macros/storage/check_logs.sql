{% macro check_logs() -%}
    {#-
        Stop unless the logs lie where a commit has one winner, and have the format of this release. Every operation begins with it:
        dbt runs no hooks before one.
    -#}
    {%- set events = source("outbox", "outbox_events") -%}
    {%- do delta_outbox.check_storage(events.schema) -%}
    {%- do delta_outbox.check_format(events) -%}
{%- endmacro %}
