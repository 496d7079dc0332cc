{% macro checked_order_select(transitions, deliveries, policies, commands) -%}
    {#-
        Per ordering key of a strict policy: who waited, from which append until which, and which event was claimed furthest
        ahead in each append.

        What is claimed only to be ended (an operator asked, or it is too old) is not sent, and no order holds it back.

        Arguments:
            transitions, deliveries, policies: relations, the models checked_transitions, checked_deliveries, checked_policies
            commands: relation, the log of commands
        Columns: policy_version, ordering_key, scope (the destination, where order counts for each), since, until
            (struct<epoch,sequence>; since null: from before the range), since_exclusive, and either wait or claim.
    -#}
    with deliveries as (
        select
            event_id,
            arrival,
            destination,
            event_type,
            ordering_key,
            {{ delta_outbox.position() }} as position,
            greatest(appended_at, scheduled_at, replayed_at) as age_from,
            state,
            reason,
            lifecycle
        from {{ deliveries }}
        where ordering_key is not null
    ),

    steps as (
        select
            *,
            struct(epoch, sequence) as at,
            row_number() over life as step,
            lead(struct(epoch, sequence)) over life as until,
            lead(reason) over life as next_reason
        from {{ transitions }}
        window life as (partition by event_id, arrival, destination order by epoch, sequence)
    ),

    kills as (
        select distinct
            event_id,
            arrival,
            lifecycle
        from {{ commands }}
        where kind = 'kill'
    ),

    claims as (
        select
            s.policy_version,
            d.ordering_key,
            if(p.order_scope = 'destination', d.destination, '') as scope,
            s.at,
            max(struct(d.position, d.event_id, d.arrival, d.destination, s.claim_id, s.occurred_at)) as claim
        from steps as s
        inner join deliveries as d
            on
                s.event_id = d.event_id
                and s.arrival = d.arrival
                and s.destination = d.destination
        inner join {{ policies }} as p
            on
                s.policy_version <=> p.policy_version
                and d.event_type = p.event_type
                and p.ordering = 'strict'
        left anti join kills as k
            on
                s.event_id = k.event_id
                and s.arrival = k.arrival
                and s.lifecycle = k.lifecycle
        where
            s.to_state = 'CLAIMED'
            and coalesce(s.next_reason not in ('expired', 'operator'), true)
            and coalesce(
                unix_micros(s.occurred_at) - unix_micros(d.age_from)
                < cast(p.expires_after_seconds as double) * 1000000,
                true
            )
        group by s.policy_version, d.ordering_key, if(p.order_scope = 'destination', d.destination, ''), s.at
    ),

    waiting as (
        -- before the first step that is checked, and after each
        select
            event_id,
            arrival,
            destination,
            inline(
                array(
                    struct(
                        if(step = 1, previous_lifecycle, null) as lifecycle,
                        if(step = 1, previous_state, null) as state,
                        if(step = 1, previous_reason, null) as reason,
                        cast(null as struct<epoch:int,sequence:bigint>) as since,
                        at as until
                    ),
                    struct(
                        lifecycle,
                        to_state as state,
                        reason,
                        at as since,
                        coalesce(until, struct(2147483647 as epoch, 9223372036854775807 as sequence)) as until
                    )
                )
            )
        from steps
        union all
        -- untouched
        select
            d.event_id,
            d.arrival,
            d.destination,
            d.lifecycle,
            d.state,
            d.reason,
            cast(null as struct<epoch:int,sequence:bigint>) as since,
            struct(2147483647 as epoch, 9223372036854775807 as sequence) as until
        from deliveries as d
        left anti join steps as s
            on
                d.event_id = s.event_id
                and d.arrival = s.arrival
                and (d.destination = s.destination or d.destination = '')
    ),

    waits as (
        select
            p.policy_version,
            d.ordering_key,
            d.position,
            d.event_id,
            d.arrival,
            d.destination,
            w.state,
            w.since,
            w.until,
            -- A claim beside a replay in one append was decided before the replay.
            w.reason <=> 'replayed' as since_exclusive,
            explode(
                case
                    when p.order_scope <> 'destination' then array('')
                    when d.destination = '' then split(p.destination, '[|]')
                    else array(d.destination)
                end
            ) as scope
        from waiting as w
        inner join deliveries as d
            on
                w.event_id = d.event_id
                and w.arrival = d.arrival
                and w.destination = d.destination
        inner join {{ policies }} as p
            on
                d.event_type = p.event_type
                and p.ordering = 'strict'
        left semi join claims as c
            on
                d.ordering_key = c.ordering_key
                and p.policy_version <=> c.policy_version
        left anti join kills as k
            on
                w.event_id = k.event_id
                and w.arrival = k.arrival
                and w.lifecycle = k.lifecycle
        where
            w.state = 'PENDING'
            or (w.state = 'DEAD' and p.on_dead = 'hold' and not w.reason <=> 'operator')
    ),

    final as (
        select
            policy_version,
            ordering_key,
            scope,
            since,
            until,
            since_exclusive,
            struct(position, event_id, arrival, destination, state) as wait,
            null as claim
        from waits
        union all
        select
            policy_version,
            ordering_key,
            scope,
            at as since,
            at as until,
            false as since_exclusive,
            null as wait,
            claim
        from claims
    )

    select * from final
{%- endmacro %}
