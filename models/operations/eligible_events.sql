with open_or_holding as ( -- noqa: ST03
    {{ delta_outbox.open_or_holding(ref("outbox_state"), ref("policy_rows")) | indent(4) }}
),

eligible as (
    {{ delta_outbox.eligible("open_or_holding", ref("policy_rows"), delta_outbox.now_utc()) | indent(4) }}
),

final as (
    select
        event_id,
        event_type,
        ordering_key,
        state,
        attempts,
        last_error,
        available_at,
        partition_key,
        created_at,
        arrival,
        destination,
        lifecycle
    from eligible
)

select * from final
