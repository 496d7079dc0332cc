{% macro moved_deliveries(state, new_events, last_transitions) -%}
    {#-
        What new transitions make of the deliveries that the tails may touch and of the new events: a part of `fold_all` and of
        `fold_transitions`.

        Arguments: those of `fold_transitions`.
        Columns: those of the projection; replaces_destination; is_touched, whether something has happened to the delivery.
    -#}
    with earlier as (
        select
            {{ delta_outbox.state_of("s") }},
            false as is_new
        from {{ state }} as s
        where __touched__
        union all
        select
            *,
            true as is_new
        from {{ new_events }}
    ),

    pairs as (
        select
            e.*,
            t.destination as last_destination,
            t.last,
            t.error,
            t.replayed_at as replayed_again_at,
            t.is_first
        from earlier as e
        left join {{ last_transitions }} as t
            on
                e.event_id = t.event_id
                and e.arrival = t.arrival
                and (e.destination = t.destination or e.destination = '')
    )

    select
        {%- for column in delta_outbox.state_columns() %}
        {{ delta_outbox.after_transition(column) }} as {{ column }},
        {%- endfor %}
        -- The first claim of an event with several destinations: one delivery takes the old row's place.
        case
            when is_new then null
            when destination <> '' or last is null then destination
            when is_first then ''
        end as replaces_destination,
        last is not null or is_new as is_touched
    from pairs
{%- endmacro %}
