-- What breaks a rule in the range that a build checks; the materialization names the rows that are judged, and keeps what is found.
select * from ({{ delta_outbox.broken_by_transitions() }})
union all
select * from ({{ delta_outbox.broken_by_deliveries() }})
union all
select * from ({{ delta_outbox.broken_by_events() }})
union all
select * from ({{ delta_outbox.broken_by_appends() }})
union all
select * from ({{ delta_outbox.broken_by_commits() }})
union all
select * from ({{ delta_outbox.broken_by_order() }})

-- depends_on: {{ ref("outbox_state") }}
-- depends_on: {{ ref("policy_rows") }}
-- depends_on: {{ source("outbox", "outbox_events") }}
-- depends_on: {{ source("outbox", "outbox_transitions") }}
-- depends_on: {{ source("outbox", "outbox_commands") }}
-- depends_on: {{ source("outbox", "outbox_progress") }}
-- depends_on: {{ source("outbox", "outbox_relays") }}
-- depends_on: {{ source("outbox", "outbox_purged") }}
