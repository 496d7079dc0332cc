{% macro broken_by_order() -%}
    {#-
        The deliveries that were published while an earlier one of their order group was open all the time from their claim
        to their result: the earlier one was overtaken.

        An order group is the ordering key, or the key within a destination, of events whose policy is strict under the
        version that decided. A dead event is open under `on_dead = hold`. What ends because an operator asked or because of
        its age holds nobody up, nor does what is past its age. For each group and each append from which earlier deliveries
        were open again (after a replay), one pass in order of position finds the one that was open longest: no join of all
        with all, for a key may have very many events.
    -#}
    with lives as (
        select
            event_id,
            arrival,
            destination,
            array_sort(
                collect_list(
                    struct(
                        struct(epoch, sequence) as at,
                        from_state,
                        to_state,
                        to_state in ('PENDING', 'CLAIMED') as stays_open,
                        to_state = 'DEAD' and reason <> 'operator' as may_hold,
                        reason in ('operator', 'expired') as is_ended_unsent,
                        policy_version
                    )
                )
            ) as steps
        from outbox_checked_log
        group by event_id, arrival, destination
    ),

    -- The keys of which something was published.
    published_keys as (
        select distinct ordering_key
        from outbox_checked_deliveries
        where
            ordering_key is not null
            and (state = 'PUBLISHED' or replayed_at is not null)
    ),

    known as (
        select /*+ merge(p, l) */
            d.event_id,
            d.arrival,
            d.destination,
            d.event_type,
            d.ordering_key,
            d.position,
            d.state,
            d.replayed_at,
            {{ delta_outbox.age_from() }} as age_from,
            coalesce(l.steps, array()) as steps
        from outbox_checked_deliveries as d
        left semi join published_keys as p on d.ordering_key = p.ordering_key
        left join lives as l
            on
                d.event_id = l.event_id
                and d.arrival = l.arrival
                and d.destination = l.destination
        where d.kill_command_id is null
    ),

    with_policy as (
        select
            k.*,
            p.policy_version,
            p.policy.on_dead = 'hold' as holds,
            explode(
                case
                    when p.policy.order_scope <> 'destination' then array('')
                    when k.destination = '' then split(p.policy.destination, '[|]')
                    else array(k.destination)
                end
            ) as scope,
            k.state in ('PENDING', 'CLAIMED')
            and coalesce({{ delta_outbox.is_too_old("k.age_from", delta_outbox.now_utc()) }}, false) as is_too_old
        from known as k
        inner join outbox_checked_policies as p on k.event_type = p.event_type
    ),

    -- Where a delivery began to be open (null: before the range), and its results with the claim before each.
    marked as (
        select
            policy_version,
            ordering_key,
            scope,
            position,
            event_id,
            arrival,
            destination,
            state,
            holds,
            steps,
            inline(
                concat(
                    if(
                        not is_too_old
                        and (
                            coalesce(get(steps, 0).from_state, state) in ('PENDING', 'CLAIMED')
                            or (size(steps) = 0 and state = 'DEAD' and holds)
                        ),
                        -- What was replayed before the range may be open for a shorter time than an older claim.
                        array(
                            struct(
                                true as is_wait,
                                if(replayed_at is null, null, struct(-1 as epoch, cast(0 as bigint) as sequence)) as since,
                                cast(null as struct<epoch:int,sequence:bigint>) as at
                            )
                        ),
                        array()
                    ),
                    transform(
                        filter(
                            steps,
                            one -> not is_too_old and one.stays_open and one.from_state in ('PUBLISHED', 'DEAD')
                        ),
                        one -> struct(true as is_wait, one.at as since, cast(null as struct<epoch:int,sequence:bigint>) as at)
                    ),
                    filter(
                        transform(
                            steps,
                            (one, place) -> if(
                                one.to_state = 'PUBLISHED' and one.policy_version = policy_version,
                                struct(false as is_wait, if(place > 0, steps[place - 1].at, null) as since, one.at as at),
                                null
                            )
                        ),
                        one -> one is not null
                    )
                )
            )
        from with_policy
    ),

    in_groups as (
        select
            *,
            get(
                filter(
                    steps,
                    one -> is_wait and (since is null or one.at > since) and not (one.stays_open or (one.may_hold and holds))
                ),
                0
            ) as ended,
            collect_set(if(is_wait, struct(since), null)) over (partition by policy_version, ordering_key, scope) as begins
        from marked
    ),

    -- Each wait until the append that ended it, each result beside each time at which a wait of its group began.
    in_order as (
        select
            * except (steps, begins),
            explode(
                if(is_wait, array(since), filter(begins, one -> one.since is null or one.since < since).since)
            ) as began
        from in_groups
    ),

    swept as (
        select
            *,
            max(
                if(
                    is_wait and coalesce(not ended.is_ended_unsent, true),
                    struct(
                        coalesce(ended.at, struct(2147483647 as epoch, 9223372036854775807 as sequence)) as until,
                        event_id,
                        state
                    ),
                    null
                )
            ) over (
                partition by policy_version, ordering_key, scope, began
                order by position
                range between unbounded preceding and current row
            ) as longest
        from in_order
    )

    select
        {{ delta_outbox.violation(
            {
                "invariant": "'overtaken_events'", "problem": "'published while an earlier event of its key was open'",
                "event_id": "event_id", "arrival": "arrival", "destination": "destination",
                "epoch": "at.epoch", "sequence": "at.sequence",
            },
            details={
                "ordering_key": "ordering_key",
                "overtaken": "longest.event_id",
                "overtaken_state": "longest.state",
            },
        ) }}
    from swept
    where
        not is_wait
        and longest.until > at
        and longest.event_id <> event_id
{%- endmacro %}
