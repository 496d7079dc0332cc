with deliveries as (
    select
        *,
        count(*) over (partition by event_id, arrival, destination) as states,
        min(destination) over (partition by event_id, arrival) as least_destination
    from {{ ref("checked_deliveries") }}
),

last_transitions as (
    select
        event_id,
        arrival,
        destination,
        max_by(struct(to_state, lifecycle, attempt, epoch, lane, sequence), struct(epoch, sequence)) as last
    from {{ ref("checked_transitions") }}
    group by event_id, arrival, destination
),

missing as (
    select
        e.event_id,
        e.arrival,
        cast(null as string) as destination,
        'an event that the projection does not show' as problem,
        cast(null as string) as state
    from {{ ref("checked_events") }} as e
    left anti join deliveries as d
        on
            e.event_id = d.event_id
            and e.arrival = d.arrival
    where e.is_event
),

several as (
    select distinct
        event_id,
        arrival,
        destination,
        'a delivery in more than one state' as problem,
        state
    from deliveries
    where
        states > 1
        or (least_destination = '' and destination <> '')
),

deviating as (
    select
        t.event_id,
        t.arrival,
        t.destination,
        'the projection does not show what the log says last' as problem,
        t.last.to_state as state
    from last_transitions as t
    left anti join deliveries as d
        on
            t.event_id = d.event_id
            and t.arrival = d.arrival
            and t.destination = d.destination
            and t.last.to_state = d.state
            and t.last.lifecycle = d.lifecycle
            and t.last.attempt = d.attempts
            and t.last.epoch = d.epoch
            and t.last.lane = d.lane
            and t.last.sequence = d.sequence
),

final as (
    select * from missing
    union all
    select * from several
    union all
    select * from deviating
)

select * from final
