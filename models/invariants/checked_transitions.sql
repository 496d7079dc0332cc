{%- set checked = delta_outbox.verification() -%}
{%- set transitions = source("outbox", "outbox_transitions") -%}
{%- set state = ref("outbox_state") -%}
{%- set checked_events = ref("checked_events") -%}
{%- if checked["nothing_new"] -%}
{{ delta_outbox.no_rows({
    "epoch": "int", "lane": "int", "sequence": "bigint", "event_id": "string", "arrival": "bigint",
    "destination": "string", "lifecycle": "int", "attempt": "int", "from_state": "string", "to_state": "string",
    "reason": "string", "claim_id": "string", "relay_id": "string", "lease_expires_at": "timestamp",
    "claim_size": "int", "publish_attempts": "int", "crashes": "int", "occurred_at": "timestamp", "actor": "string",
    "command_id": "string", "policy_version": "string", "previous_state": "string", "previous_reason": "string",
    "previous_lifecycle": "int", "previous_attempt": "int", "previous_publish_attempts": "int",
    "previous_crashes": "int", "previous_claim_id": "string", "previous_epoch": "int", "previous_sequence": "bigint",
    "fixes_destination": "boolean", "commit_version": "bigint"
}) }}
{%- else -%}
    {{ delta_outbox.checked_transitions_select(transitions, state, checked_events, checked) }}
{%- endif -%}
