{% macro state_columns() -%}
    {#- The columns of the projection, in order. -#}
    {{ return([
        "event_id", "arrival", "destination", "state", "event_type", "ordering_key", "partition_key", "created_at",
        "appended_at", "ordinal", "scheduled_at", "ambiguous", "lifecycle", "attempts", "publish_attempts", "crashes", "suspect",
        "available_at", "last_error", "reason", "claimed_at", "claimed_by", "claim_id", "claim_size",
        "lease_expires_at", "published_at", "replayed_at", "changed_at", "outcome", "kill_command_id", "kill_actor",
        "kill_reason", "policy_version", "epoch", "lane", "sequence", "payload_bytes",
    ]) }}
{%- endmacro %}
