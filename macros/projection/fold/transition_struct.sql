{% macro transition_struct() -%}
    {#- What the fold takes from a transition, as a struct. -#}
    struct(
        to_state, reason, lifecycle, attempt, publish_attempts, crashes, suspect, available_at, claim_id,
        relay_id, claim_size, lease_expires_at, occurred_at, outcome, policy_version, epoch, lane, sequence
    )
{%- endmacro %}
