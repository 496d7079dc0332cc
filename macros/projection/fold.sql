{% macro fold(state, news="ertmcd", events_tail="outbox_events_tail", transitions_tail="outbox_transitions_tail", known_events="outbox_known_events", commands_tail="outbox_commands_tail", replaced=none) -%}
    {#-
        The state of every delivery that the tails touch: the projection as it was, folded with what is new.

        The one statement of how transitions become state. The refresh merges its rows into the projection, the relay
        looks at them beside it. Every transition carries the counters after it, so the fold is "the last row of each
        delivery" and never a sum. A kill stays with its delivery until it is applied or void: while it is open in the
        same lifecycle, or DEAD by anything else.

        Arguments:
            state: relation, the projection before the tails
            news: which tails may hold something: e(vents), t(ransitions), c(ommands); and whether an id of the events may be
                r(epeated), among them or earlier, a delivery may have m(ore) than one of the transitions, and these may be
                of different d(estinations). What cannot be need not be looked for: to plan what is empty takes longer
                than to run the rest, and to sort a million rows longer than to learn that none is there twice.
            events_tail: name of the view of new rows of the event log (events_tail_select)
            transitions_tail: name of the view of new rows of the transition log (transitions_tail_select)
            known_events: name of the view of earlier events, against which identity is checked (known_events_select)
            commands_tail: name of the view of new rows of the command log (commands_tail_select)
            replaced: a condition on rows of the projection, with all news: what satisfies it is looked at, and is in the
                result also where nothing has happened to it; for whoever puts the result in its place
        Placeholders, which whoever runs the text replaces by literals, so that what is not touched is not read:
            __from_states__: list of the states (partitions of the projection) that the touched deliveries come from
            __first_arrival__, __last_arrival__: of the events that transitions and kills of the tails are about
            __with_untouched__: true or false, whether to add the deliveries of these states and arrivals to which nothing
                has happened
        Columns: those of the projection, and replaces_destination: the destination under which the delivery stands in
            the projection ('' before its first claim), null for a row to insert.
    -#}
    {%- set columns = delta_outbox.state_columns() -%}
    with
    {%- if "e" in news and "r" not in news %}
    new_events as (
        select
            {{ delta_outbox.first_state("a") }},
            true as is_new
        from (select *, false as ambiguous from {{ events_tail }}) as a
    ),
    {%- elif "e" in news %}
    arrivals as (
        select
            *,
            row_number() over (same_id) as copy,
            coalesce(lead(arrival) over (same_id) = arrival, false) as ambiguous
        from {{ events_tail }}
        window same_id as (partition by event_id order by {{ delta_outbox.order_of_copies() }})
    ),

    new_events as (
        select
            {{ delta_outbox.first_state("a") }},
            true as is_new
        from arrivals as a
        left anti join {{ known_events }} as known on a.event_id = known.event_id
        where a.copy = 1
    ),
    {%- endif %}
    {%- if "t" in news %}
    {%- if "m" in news %}

    -- By windows, not by aggregates: those sort twice, and update a copy of the row each time.
    transitions_so_far as (
        select
            *,
            last_value(error) ignore nulls over so_far as error_so_far,
            last_value(if(reason = 'replayed', occurred_at, null)) ignore nulls over so_far as replayed_at,
            lead(sequence) over (partition by event_id, arrival, destination order by epoch, sequence) is null as is_last
        from {{ transitions_tail }}
        window
            so_far as (
                partition by event_id, arrival, destination
                order by epoch, sequence
                rows between unbounded preceding and current row
            )
    ),
    {%- endif %}

    last_transitions as (
        select
            event_id,
            arrival,
            destination,
            struct(
                to_state, reason, lifecycle, attempt, publish_attempts, crashes, suspect, available_at, claim_id,
                relay_id, claim_size, lease_expires_at, occurred_at, outcome, policy_version, epoch, lane, sequence
            ) as last,
            {% if "m" in news -%}
            error_so_far as error,
            replayed_at
        from transitions_so_far
        where is_last
            {%- else -%}
            error,
            cast(null as timestamp) as replayed_at
        from {{ transitions_tail }}
            {%- endif %}
    ),
    {%- endif %}
    {%- if "c" in news %}

    kills as (
        select
            event_id,
            arrival,
            lifecycle,
            collect_list(struct(position, command_id, actor, reason, destination)) as kills
        from {{ commands_tail }}
        where kind = 'kill' and event_id is not null
        group by event_id, arrival, lifecycle
    ),
    {%- endif %}

    {%- if "c" in news or "t" not in news %}

    earlier as (
        {%- if "c" in news %}
        select
            {{ delta_outbox.state_of("s") }},
            false as is_new
        from {{ state }} as s
        {%- if replaced is not none %}
        where {{ replaced }}
        {%- else %}
        left semi join (
            {%- if "t" in news %}
            select event_id, arrival from last_transitions
            union all
            {%- endif %}
            select event_id, arrival from kills
        ) as n
            on
                s.event_id = n.event_id
                and s.arrival = n.arrival
        where
            s.state in (__from_states__)
            and s.arrival between __first_arrival__ and __last_arrival__
        {%- endif %}
        {%- endif %}
        {%- if "e" in news and "c" in news %}
        union all
        {%- endif %}
        {%- if "e" in news %}
        select * from new_events
        {%- endif %}
    ),
    {%- endif %}
    {%- if "t" in news %}
    {%- set of_transition = "t.destination as last_destination, t.last, t.error, t.replayed_at as replayed_again_at" %}

    pairs as (
        {%- if "c" in news %}
        select
            e.*,
            {{ of_transition }}
        from earlier as e
        left join last_transitions as t
            on
                e.event_id = t.event_id
                and e.arrival = t.arrival
                and (e.destination = t.destination or e.destination = '')
        {%- else %}
        select
            {{ delta_outbox.state_of("s") }},
            false as is_new,
            {{ of_transition }}
        from {{ state }} as s
        -- As good as an inner join, unless what is untouched is asked for as well.
        left join last_transitions as t
            on
                s.event_id = t.event_id
                and s.arrival = t.arrival
                and (s.destination = t.destination or s.destination = '')
        where
            s.state in (__from_states__)
            and s.arrival between __first_arrival__ and __last_arrival__
        {%- if "e" in news %}
        union all
        select
            e.*,
            {{ of_transition }}
        from new_events as e
        left join last_transitions as t
            on
                e.event_id = t.event_id
                and e.arrival = t.arrival
        {%- endif %}
        {%- endif %}
    ),

    joined as (
        select
            *,
            -- The first claim of an event with several destinations: one delivery takes the old row's place.
            {% if "d" in news -%}
            last_destination = min(last_destination) over (partition by event_id, arrival)
            {%- else -%}
            true
            {%- endif %} as is_first
        from pairs
    ),

    moved as (
        select
            event_id,
            arrival,
            coalesce(last_destination, destination) as destination,
            if(last is null, state, last.to_state) as state,
            event_type,
            ordering_key,
            partition_key,
            created_at,
            appended_at,
            ordinal,
            scheduled_at,
            ambiguous,
            if(last is null, lifecycle, last.lifecycle) as lifecycle,
            if(last is null, attempts, last.attempt) as attempts,
            if(last is null, publish_attempts, last.publish_attempts) as publish_attempts,
            if(last is null, crashes, last.crashes) as crashes,
            if(last is null, suspect, last.suspect) as suspect,
            if(last is null, available_at, last.available_at) as available_at,
            coalesce(error, last_error) as last_error,
            if(last is null, reason, last.reason) as reason,
            if(last is null, claimed_at, if(last.to_state = 'CLAIMED', last.occurred_at, null)) as claimed_at,
            if(last is null, claimed_by, if(last.to_state = 'CLAIMED', last.relay_id, null)) as claimed_by,
            if(last is null, claim_id, if(last.to_state = 'CLAIMED', last.claim_id, null)) as claim_id,
            if(last is null, claim_size, if(last.to_state = 'CLAIMED', last.claim_size, null)) as claim_size,
            if(last is null, lease_expires_at, if(last.to_state = 'CLAIMED', last.lease_expires_at, null)) as lease_expires_at,
            if(last is null, published_at, if(last.to_state = 'PUBLISHED', last.occurred_at, null)) as published_at,
            coalesce(replayed_again_at, replayed_at) as replayed_at,
            if(last is null, changed_at, last.occurred_at) as changed_at,
            if(last is null, outcome, last.outcome) as outcome,
            if(last is null or last.lifecycle = lifecycle, kill_command_id, null) as kill_command_id,
            if(last is null or last.lifecycle = lifecycle, kill_actor, null) as kill_actor,
            if(last is null or last.lifecycle = lifecycle, kill_reason, null) as kill_reason,
            if(last is null, policy_version, last.policy_version) as policy_version,
            if(last is null, epoch, last.epoch) as epoch,
            if(last is null, lane, last.lane) as lane,
            if(last is null, sequence, last.sequence) as sequence,
            payload_bytes,
            case
                when is_new then null
                when destination <> '' or last is null then destination
                when is_first then ''
            end as replaces_destination,
            last is not null or is_new as is_touched
        from joined
    ),
    {%- else %}

    moved as (
        select
            {{ delta_outbox.state_of("e") }},
            if(is_new, null, destination) as replaces_destination,
            is_new as is_touched
        from earlier as e
    ),
    {%- endif %}
    {%- if "c" in news %}

    asked as (
        select
            m.*,
            array_min(filter(k.kills, one -> one.destination in ('', m.destination))) as kill
        from moved as m
        left join kills as k
            on
                m.event_id = k.event_id
                and m.arrival = k.arrival
                and m.lifecycle = k.lifecycle
    ),
    {%- else %}

    asked as (
        select *
        from moved
    ),
    {%- endif %}

    settled as (
        select
            *,
            state in ('PENDING', 'CLAIMED') or (state = 'DEAD' and reason <> 'operator') as may_be_killed
        from asked
    )

    select
        {% for column in columns -%}
        {% if column.startswith("kill_") -%}
        {% if "c" in news -%}
        if(may_be_killed, if(kill_command_id is null, kill.{{ column[5:] }}, {{ column }}), null) as {{ column }},
        {% else -%}
        if(may_be_killed, {{ column }}, null) as {{ column }},
        {% endif -%}
        {% else -%}
        {{ column }},
        {% endif -%}
        {% endfor -%}
        replaces_destination
    from settled
    {%- if replaced is none %}
    where is_touched{% if "t" in news %} or __with_untouched__{% endif %}{% if "c" in news %} or kill is not null{% endif %}
    {%- endif %}
{%- endmacro %}
