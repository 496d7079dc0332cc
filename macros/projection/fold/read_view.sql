{% macro read_view(state, fold, touched_by=[]) -%}
    {#-
        Deliveries as they stand now: the projection, with those that the tails touch replaced by their fold.

        Arguments:
            state: relation, the projection before the tails
            fold: SQL text, a fold of it
            touched_by: list of what the tails may hold besides events: transitions, kills
        Placeholders: those of the fold; __from_states__, the states of rows that the tails may touch, for what they name beyond
            those stays as it is; and __shown__, the condition on what is shown.
    -#}
    with folded as (
        {{ fold | indent(8) }}
    ),

    untouched as (
        select {{ delta_outbox.state_columns() | join(", ") }}
        from {{ state }} as s
        {%- if "transitions" in touched_by %}
        left anti join outbox_transitions_tail as t
            on
                s.event_id = t.event_id
                and s.arrival = t.arrival
                and (s.destination = t.destination or s.destination = '')
                and s.state in (__from_states__)
        {%- endif %}
        {%- if "kills" in touched_by %}
        left anti join (select * from outbox_commands_tail where kind = 'kill') as c
            on
                s.event_id = c.event_id
                and s.arrival = c.arrival
                and s.lifecycle = c.lifecycle
                and c.destination in ('', s.destination)
                and s.state in (__from_states__)
        {%- endif %}
    )

    select *
    from untouched
    where __shown__
    union all
    select {{ delta_outbox.state_columns() | join(", ") }}
    from folded
    where __shown__
{%- endmacro %}
