-- Open tasks that no moment ends: nobody runs them, none is set, or all have passed and nobody has come.
with open_tasks as (
    select
        *,
        {{ delta_outbox.next_moment() | indent(8) }} as next_at
    from {{ ref("workflow_tasks") }}
    where delivery_state in ('PENDING', 'CLAIMED')
),

final as (
    select
        task_id,
        workflow,
        task,
        title,
        category,
        instance,
        visit,
        version,
        case
            when category is null then 'not_declared'
            when expires_at is null then 'never_expires'
            else 'overdue'
        end as why,
        never_expires_why,
        triggered_at,
        next_at,
        expires_at,
        held_by,
        attempts,
        last_error,
        instance_key
    from open_tasks
    where
        category is null
        or expires_at is null
        or (expires_at <= {{ delta_outbox.now_utc() }} and coalesce(next_at <= {{ delta_outbox.now_utc() }}, true))
)

select * from final
