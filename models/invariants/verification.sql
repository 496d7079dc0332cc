{{ delta_outbox.verification_select(
    ref("outbox_state"),
    source("outbox", "outbox_events"),
    source("outbox", "outbox_transitions"),
    source("outbox", "outbox_commands"),
    source("outbox", "outbox_progress"),
    source("outbox", "outbox_relays"),
    ref("policy_rows")
) }}
