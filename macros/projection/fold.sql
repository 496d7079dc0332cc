{% macro fold(state, events_tail="outbox_events_tail", transitions_tail="outbox_transitions_tail", known_events="outbox_known_events") -%}
    {#-
        The state of every delivery that the tails touch: the projection as it was, folded with what is new.

        The one statement of how transitions become state. The refresh merges its rows into the projection, the relay
        looks at them beside it. Every transition carries the counters after it, so the fold is "the last row of each
        delivery" and never a sum.

        Arguments:
            state: relation, the projection before the tails
            events_tail: name of the view of new rows of the event log (events_tail_select)
            transitions_tail: name of the view of new rows of the transition log (transitions_tail_select)
            known_events: name of the view of earlier events, against which identity is checked (known_events_select)
        Placeholder: __from_states__, which whoever runs the text replaces by the list of the states (partitions of the
            projection) that the touched deliveries come from, as literals, so that the others are not read.
        Columns: those of the projection, and replaces_destination: the destination under which the delivery stands in
            the projection ('' before its first claim), null for a row to insert.
    -#}
    with arrivals as (
        select
            *,
            row_number() over (
                partition by event_id
                order by {{ delta_outbox.order_of_copies() }}
            ) as copy,
            count(*) over (partition by event_id, arrival) as copies_in_commit
        from {{ events_tail }}
    ),

    first_copies as (
        select * from arrivals
        where copy = 1
    ),

    new_events as (
        select first_copies.*
        from first_copies
        left anti join {{ known_events }} as known on first_copies.event_id = known.event_id
    ),

    last_transitions as (
        select
            event_id,
            arrival,
            destination,
            max_by(
                struct(
                    to_state, reason, lifecycle, attempt, publish_attempts, crashes, suspect, available_at, claim_id,
                    relay_id, claim_size, lease_expires_at, occurred_at, outcome, policy_version, epoch, lane, sequence
                ),
                struct(epoch, sequence)
            ) as last,
            max_by(error, struct(epoch, sequence)) filter (where error is not null) as error,
            max_by(occurred_at, struct(epoch, sequence)) filter (where reason = 'replayed') as replayed_at
        from {{ transitions_tail }}
        group by event_id, arrival, destination
    ),

    moved as (
        select
            t.event_id,
            t.arrival,
            t.destination,
            t.last.to_state as state,
            coalesce(s.event_type, n.event_type) as event_type,
            coalesce(s.ordering_key, n.ordering_key) as ordering_key,
            coalesce(s.partition_key, n.partition_key) as partition_key,
            coalesce(s.created_at, n.created_at) as created_at,
            coalesce(s.appended_at, n.appended_at) as appended_at,
            coalesce(s.ordinal, n.ordinal) as ordinal,
            coalesce(s.scheduled_at, n.available_at) as scheduled_at,
            cast(coalesce(s.copies, n.copies_in_commit) as int) as copies,
            t.last.lifecycle as lifecycle,
            t.last.attempt as attempts,
            t.last.publish_attempts as publish_attempts,
            t.last.crashes as crashes,
            t.last.suspect as suspect,
            t.last.available_at as available_at,
            coalesce(t.error, s.last_error) as last_error,
            t.last.reason as reason,
            case when t.last.to_state = 'CLAIMED' then t.last.occurred_at end as claimed_at,
            case when t.last.to_state = 'CLAIMED' then t.last.relay_id end as claimed_by,
            case when t.last.to_state = 'CLAIMED' then t.last.claim_id end as claim_id,
            case when t.last.to_state = 'CLAIMED' then t.last.claim_size end as claim_size,
            case when t.last.to_state = 'CLAIMED' then t.last.lease_expires_at end as lease_expires_at,
            case when t.last.to_state = 'PUBLISHED' then t.last.occurred_at end as published_at,
            coalesce(t.replayed_at, s.replayed_at) as replayed_at,
            t.last.occurred_at as changed_at,
            t.last.outcome as outcome,
            t.last.policy_version as policy_version,
            t.last.epoch as epoch,
            t.last.lane as lane,
            t.last.sequence as sequence,
            case
                when s.event_id is null then null
                when s.destination <> '' then s.destination
                -- The first claim of an event with several destinations: one row takes the old row's place.
                when t.destination = min(t.destination) over (partition by t.event_id, t.arrival) then ''
            end as replaces_destination
        from last_transitions as t
        left join {{ state }} as s
            on
                t.event_id = s.event_id
                and t.arrival = s.arrival
                and (t.destination = s.destination or s.destination = '')
                and s.state in (__from_states__)
        left join new_events as n
            on
                t.event_id = n.event_id
                and t.arrival = n.arrival
        where coalesce(s.event_id, n.event_id) is not null
    ),

    untouched as (
        select
            n.event_id,
            n.arrival,
            '' as destination,
            'PENDING' as state,
            n.event_type,
            n.ordering_key,
            n.partition_key,
            n.created_at,
            n.appended_at,
            n.ordinal,
            n.available_at as scheduled_at,
            cast(n.copies_in_commit as int) as copies,
            0 as lifecycle,
            0 as attempts,
            0 as publish_attempts,
            0 as crashes,
            0 as suspect,
            n.available_at,
            cast(null as string) as last_error,
            cast(null as string) as reason,
            cast(null as timestamp) as claimed_at,
            cast(null as string) as claimed_by,
            cast(null as string) as claim_id,
            cast(null as int) as claim_size,
            cast(null as timestamp) as lease_expires_at,
            cast(null as timestamp) as published_at,
            cast(null as timestamp) as replayed_at,
            cast(null as timestamp) as changed_at,
            cast(null as string) as outcome,
            cast(null as string) as policy_version,
            0 as epoch,
            0 as lane,
            cast(0 as bigint) as sequence,
            cast(null as string) as replaces_destination
        from new_events as n
        left anti join last_transitions as t
            on
                n.event_id = t.event_id
                and n.arrival = t.arrival
    )

    select * from moved
    union all
    select * from untouched
{%- endmacro %}
