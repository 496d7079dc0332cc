{% macro transitions_tail_select(source) -%}
    {#- The columns of transition rows that the fold reads; instants are ones that an outbox knows (instant_bounds). -#}
    select
        event_id,
        arrival,
        destination,
        lifecycle,
        attempt,
        to_state,
        reason,
        claim_id,
        relay_id,
        {{ delta_outbox.instant_or("lease_expires_at") }} as lease_expires_at,
        claim_size,
        publish_attempts,
        crashes,
        suspect,
        {{ delta_outbox.nearest_instant("occurred_at") }} as occurred_at,
        {{ delta_outbox.instant_or("available_at") }} as available_at,
        error,
        outcome,
        policy_version,
        epoch,
        lane,
        sequence
    from {{ source }}
{%- endmacro %}
