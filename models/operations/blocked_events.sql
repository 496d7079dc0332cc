with open_or_holding as ( -- noqa: ST03
    {{ delta_outbox.open_or_holding(ref("outbox_state"), ref("policy_rows")) | indent(4) }}
),

due as (
    {{ delta_outbox.held_by_order("open_or_holding", ref("policy_rows"), delta_outbox.now_utc()) | indent(4) }}
),

final as (
    select
        event_id,
        event_type,
        ordering_key,
        state,
        attempts,
        last_error,
        blocker.event_id as blocked_by,
        blocker.reason,
        -- Not before it could have been taken itself, not before the other one was in its way.
        greatest(appended_at, available_at, changed_at, blocker.since) as blocked_since,
        blocker.next_due,
        partition_key,
        available_at,
        created_at,
        arrival,
        destination,
        lifecycle
    from due
    where blocker is not null
)

select * from final
