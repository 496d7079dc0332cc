{% macro lives_of_keys() -%}
    {#-
        The deliveries of doubtful keys, each with its transitions in the range in order: a part of
        `broken_by_order`. Killed ones are left out.

        Columns: event_id, arrival, destination, event_type, ordering_key, position, state, replayed_at; age_from; steps, an
            array of structs.
    -#}
    with lives as (
        select /*+ merge(o) */
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
        from outbox_new_transitions as t
        left semi join outbox_ordered_deliveries as o
            on
                t.event_id = o.event_id
                and t.arrival = o.arrival
        group by event_id, arrival, destination
    )

    select /*+ merge(l) */
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
    from outbox_ordered_deliveries as d
    left join lives as l
        on
            d.event_id = l.event_id
            and d.arrival = l.arrival
            and d.destination = l.destination
    where d.kill_command_id is null
{%- endmacro %}
