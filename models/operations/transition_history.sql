select
    t.event_id,
    s.event_type,
    s.ordering_key,
    t.to_state as state,
    t.attempt as attempts,
    t.error as last_error,
    t.occurred_at,
    t.from_state,
    t.to_state,
    t.reason,
    t.destination,
    t.lifecycle,
    t.claim_id,
    t.relay_id,
    t.lease_expires_at,
    t.available_at,
    t.receipt,
    t.outcome,
    t.actor,
    t.command_id,
    t.policy_version,
    t.arrival,
    t.epoch,
    t.lane,
    t.sequence
from {{ source("outbox", "outbox_transitions") }} as t
inner join {{ ref("outbox_state") }} as s
    on
        t.event_id = s.event_id
        and t.arrival = s.arrival
        and t.destination = s.destination
