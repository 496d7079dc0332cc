-- The delivery policies with defaults filled in; `position` is the row's place in the file.
select
    position,
    event_type,
    event_type_regex,
    coalesce(destination, 'default') as destination,
    coalesce(route, '{event_type}') as route,
    coalesce(format, 'raw') as format,
    coalesce(ordering, 'strict') as ordering,
    coalesce(order_scope, 'key') as order_scope,
    max_attempts,
    max_crashes,
    expires_after_seconds,
    lease_seconds,
    backoff_initial_seconds,
    backoff_multiplier,
    backoff_max_seconds,
    backoff_jitter,
    coalesce(on_dead, 'continue') as on_dead
from {{ ref("delivery_policies") }}
