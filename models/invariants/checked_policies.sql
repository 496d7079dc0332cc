{%- set checked = delta_outbox.verification() -%}
{%- set transitions = ref("checked_transitions") -%}
{%- set deliveries = ref("checked_deliveries") -%}
{%- set progress = source("outbox", "outbox_progress") -%}
{%- set current_policies = ref("policy_rows") -%}
{%- if checked["nothing_new"] -%}
{{ delta_outbox.no_rows({
    "policy_version": "string", "event_type": "string", "destination": "string", "ordering": "string",
    "order_scope": "string", "on_dead": "string", "expires_after_seconds": "string"
}) }}
{%- else -%}
    {{ delta_outbox.policies_of_versions(transitions, deliveries, progress, current_policies) }}
{%- endif -%}
