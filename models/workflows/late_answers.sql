-- An answer that was applied stands in the transition that has ended its item; the others did not count.
with answers as (
    select
        command_id,
        event_id,
        arrival,
        get_json_object(arguments, '$.outcome') as answer,
        actor,
        reason,
        requested_at,
        _metadata.row_commit_version as command_version
    from {{ source("outbox", "outbox_commands") }}
    where
        kind = 'complete'
        and get_json_object(arguments, '$.outcome') is not null
),

applied as (
    select t.command_id
    from {{ source("outbox", "outbox_transitions") }} as t
    left semi join answers as a on t.command_id = a.command_id
    where t.reason = 'completed'
),

final as (
    select
        a.command_id,
        t.task_id,
        t.workflow,
        t.task,
        t.title,
        t.instance,
        t.visit,
        a.answer,
        a.actor,
        a.reason,
        a.requested_at,
        a.command_version,
        t.changed_at as ended_at,
        t.cause,
        t.outcome,
        t.instance_key
    from answers as a
    inner join {{ ref("workflow_tasks") }} as t
        on
            a.event_id = t.task_id
            and a.arrival = t.arrival
    left anti join applied as d on a.command_id = d.command_id
    where t.delivery_state in ('PUBLISHED', 'DEAD')
)

select * from final
