{% macro lives_of_keys() -%}
    {#-
        The deliveries of the range whose key has had something published, each with its transitions in the range in order: a
        part of `broken_by_order`. Killed ones are left out.

        Columns: event_id, arrival, destination, event_type, ordering_key, position, state, replayed_at; age_from; steps, an
            array of structs.
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

    published_keys as (
        select distinct ordering_key
        from outbox_checked_deliveries
        where
            ordering_key is not null
            and (state = 'PUBLISHED' or replayed_at is not null)
    )

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
{%- endmacro %}
