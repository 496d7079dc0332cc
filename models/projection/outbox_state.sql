-- What is new, folded into the deliveries that it touches; the materialization merges it into the projection.
{{ delta_outbox.fold(this) }}

-- depends_on: {{ source("outbox", "outbox_events") }}
-- depends_on: {{ source("outbox", "outbox_transitions") }}
-- depends_on: {{ source("outbox", "outbox_commands") }}
-- depends_on: {{ source("outbox", "outbox_progress") }}
