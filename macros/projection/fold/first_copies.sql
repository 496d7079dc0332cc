{% macro first_copies(tail, known) -%}
    {#-
        The new events: of the rows of an id the first one, unless an earlier row has the id already. The home of "the first
        copy wins".

        Arguments:
            tail: relation, new rows of the event log (events_tail_select)
            known: relation, earlier events (known_events_select)
        Columns: those of the projection; `ambiguous` where the second row came with the same commit.
    -#}
    select
        {{ delta_outbox.first_state("a") }}
    from (
        select
            *,
            row_number() over (same_id) as copy,
            coalesce(lead(arrival) over (same_id) = arrival, false) as ambiguous
        from {{ tail }}
        window same_id as (partition by event_id order by arrival, {{ delta_outbox.order_of_copies() }})
    ) as a
    left anti join {{ known }} as known on a.event_id = known.event_id
    where a.copy = 1
{%- endmacro %}
