-- A transition of something that was not open: only then is the whole projection asked whether it exists at all.
with strangers as (
    select
        t.event_id,
        t.arrival,
        t.destination,
        t.occurred_at
    from {{ ref("checked_transitions") }} as t
    left anti join {{ ref("outbox_state") }} as s
        on
            t.event_id = s.event_id
            and t.arrival = s.arrival
            and t.destination = s.destination
    where
        t.previous_state is null
        and {{ delta_outbox.any_strangers() }}
),

first_claims as (
    select
        *,
        min(struct(epoch, sequence)) over (partition by event_id, arrival) as fixed_at
    from {{ ref("checked_transitions") }}
    where fixes_destination
),

copies as (
    select
        d.event_id,
        d.arrival,
        d.destination,
        'a later copy of the event became a delivery' as problem,
        d.changed_at as occurred_at
    from {{ ref("checked_deliveries") }} as d
    left semi join {{ ref("checked_events") }} as e
        on
            d.event_id = e.event_id
            and d.arrival = e.arrival
            and e.arrived_later
),

renamed as (
    select
        d.event_id,
        d.arrival,
        d.destination,
        'the projection names another type or key than the log' as problem,
        d.changed_at as occurred_at
    from {{ ref("checked_deliveries") }} as d
    inner join {{ ref("checked_events") }} as e
        on
            d.event_id = e.event_id
            and d.arrival = e.arrival
            and e.is_event
    where
        d.event_type <> e.event_type
        or not d.ordering_key <=> e.ordering_key
),

final as (
    select
        event_id,
        arrival,
        destination,
        'a transition of no event, or of a later copy' as problem,
        occurred_at
    from strangers
    union all
    select
        event_id,
        arrival,
        destination,
        'a destination that the first claim did not fix' as problem,
        occurred_at
    from first_claims
    where struct(epoch, sequence) > fixed_at
    union all
    select * from copies
    union all
    select * from renamed
)

select * from final
