{% macro fold(state, events_tail="outbox_events_tail", transitions_tail="outbox_transitions_tail", known_events="outbox_known_events", commands_tail="outbox_commands_tail") -%}
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
        commands_tail: name of the view of new rows of the command log (commands_tail_select). A kill stays with its
            delivery until it is carried out or void: while it is open in the same lifecycle, or DEAD by anything else.
        Placeholder: __from_states__, which whoever runs the text replaces by the list of the states (partitions of the
            projection) that the touched deliveries come from, as literals, so that the others are not read.
        Columns: those of the projection, and replaces_destination: the destination under which the delivery stands in
            the projection ('' before its first claim), null for a row to insert.
    -#}
    with arrivals as (
        select
            *,
            row_number() over (same_id) as copy,
            coalesce(lead(arrival) over (same_id) = arrival, false) as ambiguous
        from {{ events_tail }}
        window same_id as (partition by event_id order by {{ delta_outbox.order_of_copies() }})
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

    touched as (
        select
            coalesce(t.event_id, n.event_id) as event_id,
            coalesce(t.arrival, n.arrival) as arrival,
            coalesce(t.destination, '') as destination,
            t.last,
            t.error,
            t.replayed_at,
            -- The first claim of an event with several destinations: one delivery takes the old row's place.
            coalesce(t.destination = min(t.destination) over (partition by t.event_id, t.arrival), false) as is_first,
            n.event_id is not null as is_new,
            n.event_type,
            n.ordering_key,
            n.partition_key,
            n.created_at,
            n.appended_at,
            n.ordinal,
            n.available_at,
            n.ambiguous
        from last_transitions as t
        full outer join new_events as n
            on
                t.event_id = n.event_id
                and t.arrival = n.arrival
    ),

    killed as (
        select
            event_id,
            arrival,
            destination,
            lifecycle,
            min(struct(position, command_id, actor, reason)) as kill
        from {{ commands_tail }}
        where kind = 'kill' and event_id is not null
        group by event_id, arrival, destination, lifecycle
    ),

    moved as (
        select
            d.event_id,
            d.arrival,
            d.destination,
            coalesce(d.last.to_state, 'PENDING') as state,
            coalesce(s.event_type, d.event_type) as event_type,
            coalesce(s.ordering_key, d.ordering_key) as ordering_key,
            coalesce(s.partition_key, d.partition_key) as partition_key,
            coalesce(s.created_at, d.created_at) as created_at,
            coalesce(s.appended_at, d.appended_at) as appended_at,
            coalesce(s.ordinal, d.ordinal) as ordinal,
            coalesce(s.scheduled_at, d.available_at) as scheduled_at,
            coalesce(s.ambiguous, d.ambiguous) as ambiguous,
            coalesce(d.last.lifecycle, 0) as lifecycle,
            coalesce(d.last.attempt, 0) as attempts,
            coalesce(d.last.publish_attempts, 0) as publish_attempts,
            coalesce(d.last.crashes, 0) as crashes,
            coalesce(d.last.suspect, 0) as suspect,
            if(d.last is null, d.available_at, d.last.available_at) as available_at,
            coalesce(d.error, s.last_error) as last_error,
            d.last.reason as reason,
            case when d.last.to_state = 'CLAIMED' then d.last.occurred_at end as claimed_at,
            case when d.last.to_state = 'CLAIMED' then d.last.relay_id end as claimed_by,
            case when d.last.to_state = 'CLAIMED' then d.last.claim_id end as claim_id,
            case when d.last.to_state = 'CLAIMED' then d.last.claim_size end as claim_size,
            case when d.last.to_state = 'CLAIMED' then d.last.lease_expires_at end as lease_expires_at,
            case when d.last.to_state = 'PUBLISHED' then d.last.occurred_at end as published_at,
            coalesce(d.replayed_at, s.replayed_at) as replayed_at,
            d.last.occurred_at as changed_at,
            d.last.outcome as outcome,
            case
                when s.kill_command_id is not null and s.lifecycle = coalesce(d.last.lifecycle, 0)
                    then struct(0L as position, s.kill_command_id as command_id, s.kill_actor as actor, s.kill_reason as reason)
            end as earlier_kill,
            d.last.policy_version as policy_version,
            coalesce(d.last.epoch, 0) as epoch,
            coalesce(d.last.lane, 0) as lane,
            coalesce(d.last.sequence, 0) as sequence,
            case
                when s.event_id is null then null
                when s.destination <> '' then s.destination
                when d.is_first then ''
            end as replaces_destination
        from touched as d
        left join {{ state }} as s
            on
                d.event_id = s.event_id
                and d.arrival = s.arrival
                and (d.destination = s.destination or s.destination = '')
                and s.state in (__from_states__)
        where d.is_new or s.event_id is not null
    ),

    -- Deliveries of which only a kill is new.
    asked as (
        select
            {% for column in delta_outbox.state_columns() if not column.startswith("kill_") -%}
            {% if column == "policy_version" %}case
                when s.kill_command_id is not null
                    then struct(0L as position, s.kill_command_id as command_id, s.kill_actor as actor, s.kill_reason as reason)
            end as earlier_kill,
            {% endif %}s.{{ column }},
            {% endfor -%}
            s.destination as replaces_destination
        from {{ state }} as s
        where
            s.state in (__from_states__)
            and exists (
                select 1 from killed as k
                where
                    k.event_id = s.event_id
                    and k.arrival = s.arrival
                    and k.destination in ('', s.destination)
            )
            and not exists (
                select 1 from last_transitions as t
                where
                    t.event_id = s.event_id
                    and t.arrival = s.arrival
                    and (t.destination = s.destination or s.destination = '')
            )
    ),

    touched_now as (
        select * from moved
        union all
        select * from asked
    ),

    with_kill as (
        select
            d.*,
            case
                when d.state in ('PENDING', 'CLAIMED') or (d.state = 'DEAD' and d.reason <> 'operator')
                    then coalesce(d.earlier_kill, least(of_event.kill, of_delivery.kill))
            end as kill
        from touched_now as d
        left join killed as of_event
            on
                d.event_id = of_event.event_id
                and d.arrival = of_event.arrival
                and d.lifecycle = of_event.lifecycle
                and of_event.destination = ''
        left join killed as of_delivery
            on
                d.event_id = of_delivery.event_id
                and d.arrival = of_delivery.arrival
                and d.lifecycle = of_delivery.lifecycle
                and d.destination = of_delivery.destination
                and of_delivery.destination <> ''
    )

    select
        {% for column in delta_outbox.state_columns() -%}
        {% if column.startswith("kill_") %}kill.{{ column[5:] }} as {{ column }}{% else %}{{ column }}{% endif %},
        {% endfor -%}
        replaces_destination
    from with_kill
{%- endmacro %}
