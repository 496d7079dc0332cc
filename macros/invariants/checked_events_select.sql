{% macro checked_events_select(events, purged, range) -%}
    {#-
        The ids that came to the event log in a range, each with its first row of the range; what was purged is left out.

        Arguments:
            events: name of a query with narrow rows of the event log
            purged: relation, what is left of purged deliveries
            range: the mapping of `invariant_range`
        Columns: event_id, arrival, event_type, ordering_key, created_at, rows.
    -#}
    select
        event_id,
        first.arrival as arrival,
        first.event_type as event_type,
        first.ordering_key as ordering_key,
        first.created_at as created_at,
        rows
    from (
        select{{ " /*+ merge(p) */" if range["purged"] }}
            event_id,
            min_by(
                struct(arrival, event_type, ordering_key, created_at),
                struct(arrival, {{ delta_outbox.order_of_copies() }})
            ) as first,
            count(*) as rows
        from {{ events }} as e
        {%- if range["purged"] %}
        left anti join {{ purged }} as p
            on
                e.event_id = p.event_id
                and e.arrival <= p.events_version
        {%- endif %}
        group by event_id
    )
{%- endmacro %}
