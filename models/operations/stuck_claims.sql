-- Claims of `todo` wait for a person and are left out.
select
    event_id,
    event_type,
    ordering_key,
    state,
    attempts,
    last_error,
    claimed_by,
    claimed_at,
    lease_expires_at,
    timestampdiff(second, lease_expires_at, {{ delta_outbox.now_utc() }}) as overdue_seconds,
    claim_id,
    destination,
    lifecycle,
    created_at,
    arrival
from {{ ref("outbox_state") }}
where
    state = 'CLAIMED'
    and {{ delta_outbox.lease_is_over(delta_outbox.now_utc()) }}
