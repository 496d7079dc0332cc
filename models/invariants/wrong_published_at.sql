select
    event_id,
    arrival,
    destination,
    if(state = 'PUBLISHED', 'published without published_at', 'published_at without being published') as problem,
    state,
    published_at,
    changed_at
from {{ ref("checked_deliveries") }}
where {{ delta_outbox.given_unless("published_at", "state = 'PUBLISHED'") }}
