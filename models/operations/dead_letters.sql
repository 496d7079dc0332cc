select
    event_id,
    event_type,
    ordering_key,
    state,
    attempts,
    last_error,
    changed_at as dead_at,
    reason,
    destination,
    lifecycle,
    publish_attempts,
    crashes,
    created_at,
    arrival
from {{ ref("outbox_state") }}
where state = 'DEAD'
