-- A task of which nobody knows whether its third party has acted: it has ended as uncertain, or an operator has ended it after an
-- attempt without a known result. Both causes are literals, so that a question about the first reads no transitions.
with killed as (
    select * from {{ ref("workflow_tasks") }}
    where
        delivery_state = 'DEAD'
        and cause = 'killed'
        -- The last claim is the one by which it was killed.
        and attempts > 1
),

unsure as (
    {{ delta_outbox.unsure_tasks(source("outbox", "outbox_transitions"), "killed") | indent(4) }}
),

every as (
    select
        *,
        'uncertain' as why
    from {{ ref("workflow_tasks") }}
    where
        delivery_state = 'PUBLISHED'
        and cause = 'uncertain'
    union all
    select
        k.*,
        'killed' as why
    from killed as k
    left semi join unsure as u
        on
            k.task_id = u.event_id
            and k.arrival = u.arrival
),

final as (
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
        why as cause,
        outcome,
        attempts,
        last_error,
        instance_key
    from every
)

select * from final
