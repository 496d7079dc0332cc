select
    event_id,
    arrival,
    destination,
    case
        when not coalesce({{ delta_outbox.legal_transition_check() }}, false) then 'not a legal transition'
        when previous_state is null then 'begins where no delivery was open'
        else 'does not begin where the last one ended'
    end as problem,
    previous_state,
    from_state,
    to_state,
    reason,
    occurred_at,
    epoch,
    lane,
    sequence
from {{ ref("checked_transitions") }}
where
    not coalesce({{ delta_outbox.legal_transition_check() }}, false)
    or previous_state is null
    or previous_state <> from_state
