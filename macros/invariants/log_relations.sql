{% macro log_relations() -%}
    {#- The five logs, and the record of what was purged from them, as a mapping of their short names (events, transitions, ...) to relations. -#}
    {{ return({
        "events": source("outbox", "outbox_events"),
        "transitions": source("outbox", "outbox_transitions"),
        "commands": source("outbox", "outbox_commands"),
        "progress": source("outbox", "outbox_progress"),
        "relays": source("outbox", "outbox_relays"),
        "purged": source("outbox", "outbox_purged"),
    }) }}
{%- endmacro %}
