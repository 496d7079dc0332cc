-- The state is a literal on each side, so that a question about open items reads nothing of those that have ended.
with items as (
    select * from {{ ref("workflow_tasks") }}
    where category = 'to_do'
),

holders as (
    {{ delta_outbox.item_holders(ref("outbox_state")) | indent(4) }}
),

open_items as (
    select
        i.*,
        'open' as state,
        cast(null as timestamp) as ended_at,
        h.assigned_to
    from items as i
    left join holders as h
        on
            i.task_id = h.event_id
            and i.arrival = h.arrival
    where i.delivery_state in ('PENDING', 'CLAIMED')
),

ended_items as (
    select
        *,
        'ended' as state,
        changed_at as ended_at,
        cast(null as string) as assigned_to
    from items
    where delivery_state in ('PUBLISHED', 'DEAD')
),

every as (
    select * from open_items
    union all
    select * from ended_items
),

final as (
    select
        task_id,
        workflow,
        task,
        title,
        instance,
        visit,
        version,
        state,
        roles,
        triggered_at as opened_at,
        due_at,
        expires_at,
        held_by,
        held_since,
        assigned_to,
        ended_at,
        cause,
        outcome,
        instance_key
    from every
)

select * from final
