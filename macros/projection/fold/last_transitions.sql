{% macro last_transitions(tail) -%}
    {#-
        The last new transition of each delivery, with what of the earlier ones counts: the last error, the last replay.

        By windows, not by aggregates: those sort twice, and update a copy of the row each time.

        Arguments:
            tail: relation, new rows of the transition log (transitions_tail_select)
        Columns: event_id, arrival, destination; last, a struct; error, replayed_at; is_first, whether the destination is
            the least one of the event in the tail.
    -#}
    select
        event_id,
        arrival,
        destination,
        {{ delta_outbox.transition_struct() }} as last,
        error_so_far as error,
        replayed_at,
        is_first
    from (
        select
            *,
            last_value(error) ignore nulls over so_far as error_so_far,
            last_value(if(reason = 'replayed', occurred_at, null)) ignore nulls over so_far as replayed_at,
            lead(sequence) over (partition by event_id, arrival, destination order by epoch, sequence) is null as is_last,
            destination = min(destination) over (partition by event_id, arrival) as is_first
        from {{ tail }}
        window
            so_far as (
                partition by event_id, arrival, destination
                order by epoch, sequence
                rows between unbounded preceding and current row
            )
    )
    where is_last
{%- endmacro %}
