{% macro picture(state, events_tail="outbox_events_tail", transitions_tail="outbox_transitions_tail", known_events="outbox_known_events", commands_tail="outbox_commands_tail") -%}
    {#-
        The open deliveries now: the projection, with the deliveries that the tails touch replaced by their fold.

        Arguments and the placeholder __from_states__ are those of `fold`.
        Placeholder: __shown_states__, the states that are shown: PENDING and CLAIMED, and DEAD where a policy lets the dead
            hold their key. Of those only the ones that may hold are shown.
    -#}
    {%- set shown -%}
        state in (__shown_states__)
        and (state <> 'DEAD' or (reason <> 'operator' and kill_command_id is null and ordering_key is not null))
    {%- endset -%}
    with folded as (
        {{ delta_outbox.fold(state, events_tail, transitions_tail, known_events, commands_tail) | indent(8) }}
    ),

    untouched as (
        select {{ delta_outbox.state_columns() | join(", ") }}
        from {{ state }} as s
        where
            not exists (
                select 1 from {{ transitions_tail }} as t
                where
                    t.event_id = s.event_id
                    and t.arrival = s.arrival
                    and (t.destination = s.destination or s.destination = '')
            )
            and not exists (
                select 1 from {{ commands_tail }} as c
                where
                    c.kind = 'kill'
                    and c.event_id = s.event_id
                    and c.arrival = s.arrival
                    and c.destination in ('', s.destination)
            )
    )

    select *
    from untouched
    where {{ shown }}
    union all
    select {{ delta_outbox.state_columns() | join(", ") }}
    from folded
    where {{ shown }}
{%- endmacro %}
