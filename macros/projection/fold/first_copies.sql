{% macro first_copies(tail, known, content=[]) -%}
    {#-
        The new events: of the rows of an id the first one, unless an earlier row has the id already. The home of "the first
        copy wins".

        Arguments:
            tail: relation, new rows of the event log (events_tail_select)
            known: relation, earlier events (known_events_select)
            content: list of columns that the rows have besides, and that then count as well
        Columns: those of the projection, `ambiguous` where the second row came with the same commit; and the content.
    -#}
    {%- set order = delta_outbox.order_of_contents() if content else delta_outbox.order_of_copies() -%}
    select
        {{ delta_outbox.first_state("a") }}
        {%- for column in content %},
        a.{{ column }}
        {%- endfor %}
    from (
        select
            *,
            row_number() over (same_id) as copy,
            coalesce(lead(arrival) over (same_id) = arrival, false) as ambiguous
        from {{ tail }}
        window same_id as (partition by event_id order by arrival, {{ order }})
    ) as a
    left anti join {{ known }} as known on a.event_id = known.event_id
    where a.copy = 1
{%- endmacro %}
