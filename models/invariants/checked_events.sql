{%- set checked = delta_outbox.verification() -%}
{%- set events = source("outbox", "outbox_events") -%}
{%- if checked["nothing_new"] -%}
{{ delta_outbox.no_rows({
    "event_id": "string", "arrival": "bigint", "event_type": "string", "ordering_key": "string",
    "created_at": "timestamp", "is_event": "boolean", "arrived_later": "boolean"
}) }}
{%- else -%}
    {{ delta_outbox.checked_events_select(events, checked) }}
{%- endif -%}
