-- A task that has ended as uncertain: nobody knows whether its third party has acted.
select
    task_id,
    workflow,
    task,
    title,
    category,
    third_party,
    compromise,
    instance,
    visit,
    version,
    triggered_at,
    changed_at as ended_at,
    outcome,
    attempts,
    last_error,
    instance_key
from {{ ref("workflow_tasks") }}
where
    delivery_state = 'PUBLISHED'
    and cause = 'uncertain'
