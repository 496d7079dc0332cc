{% macro sole_transitions(tail) -%}
    {#-
        The new transitions where it is known that no delivery has two of them, and all are of one destination: what
        `last_transitions` returns then.

        Arguments:
            tail: relation, new rows of the transition log (transitions_tail_select)
    -#}
    select
        event_id,
        arrival,
        destination,
        {{ delta_outbox.transition_struct() }} as last,
        error,
        cast(null as timestamp) as replayed_at,
        true as is_first
    from {{ tail }}
{%- endmacro %}
