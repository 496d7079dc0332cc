{% macro projected_logs() -%}
    {#- The logs that the projection is derived from, as a mapping of their short names to relations. -#}
    {{ return({
        "events": source("outbox", "outbox_events"),
        "transitions": source("outbox", "outbox_transitions"),
        "commands": source("outbox", "outbox_commands"),
    }) }}
{%- endmacro %}
