select
    event_id,
    arrival,
    destination,
    'claimed while it was claimed' as problem,
    previous_claim_id as live_claim_id,
    claim_id,
    relay_id,
    attempt,
    lifecycle,
    occurred_at,
    epoch,
    lane,
    sequence
from {{ ref("checked_transitions") }}
where
    to_state = 'CLAIMED'
    and previous_state = 'CLAIMED'
