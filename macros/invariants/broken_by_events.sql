{% macro broken_by_events() -%}
    {#-
        The new events that the projection does not show, or shows under another type or key. One that it does not show
        repeats an earlier one (outbox_earlier_events), or is lost.
    -#}
    with shown as (
        select /*+ merge(d) */
            e.event_id,
            e.arrival,
            e.created_at,
            d.destination,
            d.event_id is not null as is_renamed
        from outbox_checked_events as e
        left join outbox_checked_deliveries as d
            on
                e.event_id = d.event_id
                and e.arrival = d.arrival
        where
            d.event_id is null
            or d.event_type <> e.event_type
            or not d.ordering_key <=> e.ordering_key
    ),

    final as (
        select /*+ merge(o) */
            if(is_renamed, 'false_identities', 'lost_events') as invariant,
            if(
                is_renamed,
                'the projection names another type or key than the log',
                'an event that the projection does not show'
            ) as problem,
            s.event_id,
            s.arrival,
            s.destination,
            s.created_at as occurred_at
        from shown as s
        left join outbox_earlier_events as o
            on
                s.event_id = o.event_id
                and s.arrival > o.arrival
        where
            s.is_renamed
            or o.event_id is null
    )

    select
        {{ delta_outbox.violation(
            {
                "invariant": "invariant", "problem": "problem", "event_id": "event_id", "arrival": "arrival", "destination": "destination",
                "occurred_at": "occurred_at",
            },
        ) }}
    from final
{%- endmacro %}
