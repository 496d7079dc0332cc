with rewrites as (
    select inline(rewrites) from {{ ref("verification") }}
)

select
    log,
    version,
    if(operation = 'REPLACED', 'the log was replaced by another table', 'not an append') as problem,
    operation,
    cast(committed_at as timestamp) as committed_at,
    user_metadata,
    details
from rewrites
