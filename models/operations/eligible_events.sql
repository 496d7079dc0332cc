with eligible as (
    {{ delta_outbox.eligible(ref("outbox_state"), ref("policy_rows"), delta_outbox.now_utc()) | indent(4) }}
)

select
    event_id,
    event_type,
    ordering_key,
    partition_key,
    state,
    attempts,
    last_error,
    available_at,
    created_at,
    arrival,
    destination,
    lifecycle
from eligible
