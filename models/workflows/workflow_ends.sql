-- The first event of its id, as that of any event: whoever appends another one later ends nothing.
with ends as (
    select
        event_id,
        event_type,
        created_at,
        metadata,
        _metadata.row_commit_version as arrival
    from {{ source("outbox", "outbox_events") }}
    where {{ delta_outbox.is_reserved("event_id") }}
),

final as (
    select
        e.metadata['workflow'] as workflow,
        e.metadata['instance'] as instance,
        e.event_id as instance_key,
        try_cast(e.metadata['version'] as int) as version,
        try_cast(e.metadata['plan'] as bigint) as plan,
        e.metadata['start_event_id'] as start_event_id,
        try_cast(e.metadata['started_at'] as timestamp) as started_at,
        e.created_at as ended_at,
        e.event_type as exit,
        e.metadata['task'] as last_task,
        e.metadata['task_id'] as last_task_id,
        e.metadata['cause'] as last_cause,
        e.metadata['outcome'] as last_outcome
    from ends as e
    left semi join {{ ref("outbox_state") }} as s
        on
            e.event_id = s.event_id
            and e.arrival = s.arrival
    where e.metadata['task_id'] is not null
)

select * from final
