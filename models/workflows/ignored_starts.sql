with ignored as (
    {{ delta_outbox.rows_of_derivation(
        "ignored",
        {
            "event_id": "string", "arrival": "bigint", "workflow": "string", "instance": "string", "why": "string",
            "message": "string",
        },
    ) | indent(4) }}
)

select
    event_id,
    arrival,
    workflow,
    instance,
    why,
    message,
    planned_at as ignored_at
from ignored
