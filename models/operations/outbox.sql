-- The content comes from the log by (event_id, arrival): a later row of the same id is another row and never shows here.
with content as (
    select
        event_id,
        _metadata.row_commit_version as arrival,
        ordinal,
        created_at,
        event_type,
        ordering_key,
        partition_key,
        available_at,
        payload,
        headers,
        metadata
    from {{ source("outbox", "outbox_events") }}
),

single as (
    select
        s.*,
        c.payload,
        c.headers,
        c.metadata
    from {{ ref("outbox_state") }} as s
    inner join content as c
        on
            s.event_id = c.event_id
            and s.arrival = c.arrival
    where not s.ambiguous
),

ranked as (
    select
        s.*,
        c.payload,
        c.headers,
        c.metadata,
        row_number() over (
            partition by s.event_id, s.arrival, s.destination
            order by {{ delta_outbox.order_of_contents("c") }}
        ) as copy
    from {{ ref("outbox_state") }} as s
    inner join content as c
        on
            s.event_id = c.event_id
            and s.arrival = c.arrival
    where s.ambiguous
),

first_of_several as (
    select * except (copy)
    from ranked
    where copy = 1
),

deliveries as (
    select * from single
    union all
    select * from first_of_several
),

final as (
    select
        event_id,
        event_type,
        payload,
        headers,
        metadata,
        ordering_key,
        partition_key,
        created_at,
        state,
        attempts,
        last_error,
        available_at,
        claimed_at,
        claimed_by,
        published_at,
        destination,
        lifecycle,
        publish_attempts,
        crashes,
        claim_id,
        lease_expires_at,
        {{ delta_outbox.lane("ordering_key", "event_id") }} as lane,
        appended_at,
        changed_at,
        reason,
        outcome,
        policy_version,
        arrival,
        sequence
    from deliveries
)

select * from final
