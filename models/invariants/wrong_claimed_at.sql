select
    event_id,
    arrival,
    destination,
    if(state = 'CLAIMED', 'claimed without claimed_at', 'claimed_at without a claim') as problem,
    state,
    claimed_at,
    claimed_by,
    changed_at
from {{ ref("checked_deliveries") }}
where {{ delta_outbox.given_unless("claimed_at", "state = 'CLAIMED'") }}
