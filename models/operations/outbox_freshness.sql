select
    number as plan_number,
    planned_at as refreshed_at,
    cast(get_json_object(plan, '$.events.to') as bigint) as events_version,
    cast(get_json_object(plan, '$.transitions.to') as bigint) as transitions_version,
    cast(get_json_object(plan, '$.commands.to') as bigint) as commands_version
from {{ source("outbox", "outbox_progress") }}
where writer = 'projection'
order by number desc
limit 1
