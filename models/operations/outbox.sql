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
        metadata,
        appended_at,
        payload_bytes
    from {{ source("outbox", "outbox_events") }}
),

single as (
    select
        {{ delta_outbox.state_of("s") }},
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
        {{ delta_outbox.state_of("s") }},
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

-- What the projection has not seen yet. The bound on appended_at, a day for clocks that differ, spares reading old files.
unseen as (
    select
        c.* except (appended_at),
        coalesce(c.appended_at, c.created_at) as appended_at
    from content as c
    where
        c.arrival > (select f.events_version from {{ ref("outbox_freshness") }} as f)
        and (
            c.appended_at is null
            or c.appended_at >= (select f.refreshed_at - interval 1 day from {{ ref("outbox_freshness") }} as f)
        )
),

repeated as ( -- noqa: ST03
    select s.event_id
    from {{ ref("outbox_state") }} as s
    left semi join unseen as u on s.event_id = u.event_id
),

first_unseen as (
    {{ delta_outbox.first_copies("unseen", "repeated", ["payload", "headers", "metadata"]) | indent(4) }}
),

deliveries as (
    select * from single
    union all
    select * from first_of_several
    union all
    select * from first_unseen
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
        lane,
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
