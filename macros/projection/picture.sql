{% macro picture(state, events_tail="outbox_events_tail", transitions_tail="outbox_transitions_tail", known_events="outbox_known_events") -%}
    {#-
        The open deliveries now: the projection, with the deliveries that the tails touch replaced by their fold.
        Arguments and the placeholder are those of `fold`.
    -#}
    with folded as (
        {{ delta_outbox.fold(state, events_tail, transitions_tail, known_events) | indent(8) }}
    )

    select {{ delta_outbox.state_columns() | join(", ") }}
    from {{ state }} as s
    where
        s.state in ('PENDING', 'CLAIMED')
        and not exists (
            select 1 from {{ transitions_tail }} as t
            where
                t.event_id = s.event_id
                and t.arrival = s.arrival
                and (t.destination = s.destination or s.destination = '')
        )
    union all
    select {{ delta_outbox.state_columns() | join(", ") }}
    from folded
    where state in ('PENDING', 'CLAIMED')
{%- endmacro %}
