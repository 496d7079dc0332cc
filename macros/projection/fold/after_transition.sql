{% macro after_transition(column) -%}
    {#-
        What a column of the projection holds of a delivery after its last new transition, or as before if it has none: an
        expression over `pairs` of `moved_deliveries`.

        Arguments:
            column: its name
    -#}
    {%- set names = {
        "state": "to_state", "attempts": "attempt", "changed_at": "occurred_at",
        "claimed_at": "occurred_at", "claimed_by": "relay_id", "published_at": "occurred_at",
    } -%}
    {%- set given = "last." ~ names.get(column, column) -%}
    {%- if column in [
        "state", "lifecycle", "attempts", "publish_attempts", "crashes", "suspect", "available_at", "reason", "changed_at",
        "outcome", "policy_version", "epoch", "lane", "sequence",
    ] -%}
        if(last is null, {{ column }}, {{ given }})
    {%- elif column in ["claimed_at", "claimed_by", "claim_id", "claim_size", "lease_expires_at"] -%}
        if(last is null, {{ column }}, if(last.to_state = 'CLAIMED', {{ given }}, null))
    {%- elif column == "published_at" -%}
        if(last is null, {{ column }}, if(last.to_state = 'PUBLISHED', {{ given }}, null))
    {%- elif column.startswith("kill_") -%}
        if(last is null or last.lifecycle = lifecycle, {{ column }}, null)
    {%- elif column == "destination" -%}
        coalesce(last_destination, destination)
    {%- elif column == "last_error" -%}
        coalesce(error, last_error)
    {%- elif column == "replayed_at" -%}
        coalesce(replayed_again_at, replayed_at)
    {%- else -%}
        {{ column }}
    {%- endif -%}
{%- endmacro %}
