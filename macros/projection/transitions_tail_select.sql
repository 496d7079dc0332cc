{% macro transitions_tail_select(source) -%}
    {#- The columns of transition rows that the fold reads. -#}
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
        lease_expires_at,
        claim_size,
        publish_attempts,
        crashes,
        suspect,
        occurred_at,
        available_at,
        error,
        outcome,
        policy_version,
        epoch,
        lane,
        sequence
    from {{ source }}
{%- endmacro %}
