select
    event_id,
    arrival,
    destination,
    case
        when coalesce(previous_state <> 'CLAIMED', true) then 'the end of a claim that was over'
        else 'the end of another claim than the live one'
    end as problem,
    previous_claim_id as live_claim_id,
    claim_id,
    relay_id,
    to_state,
    reason,
    occurred_at,
    epoch,
    lane,
    sequence
from {{ ref("checked_transitions") }}
where
    from_state = 'CLAIMED'
    and (
        coalesce(previous_state <> 'CLAIMED', true)
        or not claim_id <=> previous_claim_id
    )
