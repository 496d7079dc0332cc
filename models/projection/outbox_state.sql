-- What is new, folded into the deliveries that it touches; the materialization puts it into the projection.
{{ delta_outbox.fold_all(this) }}

-- depends_on: {{ source("outbox", "outbox_events") }}
-- depends_on: {{ source("outbox", "outbox_transitions") }}
-- depends_on: {{ source("outbox", "outbox_commands") }}
-- depends_on: {{ source("outbox", "outbox_progress") }}
