{% macro held_by_order(deliveries, policy_rows, now, unavailable=none) -%}
    {#-
        Every delivery that is due, with the first one that blocks it, if any does.

        The one statement of order. Due is PENDING, not killed, and `available_at <= now` or null. A due delivery is blocked
        by the first delivery of its order group before it that is not eligible itself: one that backs off, is scheduled, is
        claimed, or is DEAD under `on_dead = hold`. A killed one blocks nothing, unless it is still in flight. Only strict
        events with an ordering key wait, and only for such. An order group is the ordering key; under
        `order_scope = destination` it is the key within each destination, and an event that was never claimed yet waits
        for, and blocks, all destinations of its policy.

        Arguments:
            deliveries: relation, the open deliveries, and the DEAD ones where a policy holds (open_or_holding)
            policy_rows: relation, the delivery policies in order
            now: SQL expression, the time of the question
            unavailable: names joined by `|`, the destinations that nothing is to be claimed for: what goes to no other one
                is not eligible, and blocks its key. Left out, as in the views, all are available.
        Columns: those of the projection; position; where `unavailable` is given also order_group and goes_to, the
            destinations joined by `|`; and blocker, null for what is eligible: a struct of position, event_id,
            reason (retrying, scheduled, claimed, held, unavailable), since (when it began to block others for this reason) and
            next_due (when it is due again, or its lease ends; null if only an operator can help).
    -#}
    with relevant as (
        select
            *,
            {{ delta_outbox.position() }} as position
        from {{ deliveries }}
        where
            state in ('PENDING', 'CLAIMED', 'DEAD')
            and (state = 'CLAIMED' or kill_command_id is null)
            and (state <> 'DEAD' or (ordering_key is not null and reason <> 'operator'))
    ),

    event_types as (
        select distinct event_type from relevant
    ),

    policies as (
        {{ delta_outbox.policy_of_event_type("event_types", policy_rows) | indent(8) }}
    ),

    policies_among_others as (
        select
            *,
            collect_set(
                case when policy.ordering = 'strict' and policy.order_scope = 'destination' then policy.destination end
            ) over () as all_destinations
        from policies
    ),

    with_policy as (
        select /*+ broadcast(p) */
            d.*,
            case
                when p.policy.ordering = 'strict' and d.ordering_key is not null
                    then struct(
                        d.ordering_key as ordering_key,
                        case
                            when p.policy.order_scope = 'destination'
                                then coalesce(nullif(d.destination, ''), p.policy.destination)
                            else ''
                        end as destinations
                    )
            end as order_group,
            p.policy.on_dead as on_dead,
            p.all_destinations,
            {%- if unavailable is not none %}
            coalesce(nullif(d.destination, ''), p.policy.destination) as goes_to,
            {%- endif %}
            d.state = 'PENDING' and coalesce(d.available_at <= {{ now }}, true)
            {%- if unavailable is not none %}
            and size(
                array_except(
                    split(coalesce(nullif(d.destination, ''), p.policy.destination), '[|]'), split('{{ unavailable }}', '[|]')
                )
            ) > 0
            {%- endif %} as is_due
        from relevant as d
        left join policies_among_others as p on d.event_type = p.event_type
    ),

    blockers as (
        select
            order_group.ordering_key as ordering_key,
            -- Every set of destinations that shares one with the blocker.
            explode(
                case
                    when order_group.destinations = '' then array('')
                    else array_union(
                        array_union(array(order_group.destinations), split(order_group.destinations, '[|]')),
                        filter(
                            all_destinations,
                            several -> arrays_overlap(
                                split(several, '[|]'), split(order_group.destinations, '[|]')
                            )
                        )
                    )
                end
            ) as destinations,
            struct(
                position,
                event_id,
                case
                    when state = 'CLAIMED' then 'claimed'
                    when state = 'DEAD' then 'held'
                    {%- if unavailable is not none %}
                    when coalesce(available_at <= {{ now }}, true) then 'unavailable'
                    {%- endif %}
                    when attempts > 0 then 'retrying'
                    else 'scheduled'
                end as reason,
                greatest(appended_at, changed_at) as since,
                case
                    when state = 'CLAIMED' then lease_expires_at
                    when state = 'PENDING' then available_at
                end as next_due
            ) as blocker
        from with_policy
        where
            order_group is not null
            and not is_due
            and (state <> 'DEAD' or on_dead = 'hold')
    ),

    first_blockers as (
        select
            struct(ordering_key, destinations) as order_group,
            min(blocker) as blocker
        from blockers
        group by ordering_key, destinations
    )

    select
        with_policy.* except ({{ "order_group, " if unavailable is none }}on_dead, all_destinations, is_due),
        case when first_blockers.blocker.position < with_policy.position then first_blockers.blocker end as blocker
    from with_policy
    left join first_blockers on with_policy.order_group = first_blockers.order_group
    where with_policy.is_due
{%- endmacro %}
