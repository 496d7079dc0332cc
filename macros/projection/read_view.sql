{% macro read_view(state, news="ertmcd", events_tail="outbox_events_tail", transitions_tail="outbox_transitions_tail", known_events="outbox_known_events", commands_tail="outbox_commands_tail") -%}
    {#-
        The open deliveries now: the projection, with the deliveries that the tails touch replaced by their fold.

        Arguments and placeholders are those of `fold`.
        One more placeholder: __shown_states__, the states that are shown: PENDING and CLAIMED, and DEAD where a policy lets
            the dead hold their key. Of those only the ones that may hold are shown.
    -#}
    {%- set shown -%}
        state in (__shown_states__)
        and (state <> 'DEAD' or (reason <> 'operator' and kill_command_id is null and ordering_key is not null))
    {%- endset -%}
    with folded as (
        {{ delta_outbox.fold(state, news, events_tail, transitions_tail, known_events, commands_tail) | indent(8) }}
    ),

    untouched as (
        select {{ delta_outbox.state_columns() | join(", ") }}
        from {{ state }} as s
        {%- if "t" in news %}
        left anti join {{ transitions_tail }} as t
            on
                s.event_id = t.event_id
                and s.arrival = t.arrival
                and (s.destination = t.destination or s.destination = '')
        {%- endif %}
        {%- if "c" in news %}
        left anti join (select * from {{ commands_tail }} where kind = 'kill') as c
            on
                s.event_id = c.event_id
                and s.arrival = c.arrival
                and c.destination in ('', s.destination)
        {%- endif %}
    )

    select *
    from untouched
    where {{ shown }}
    union all
    select {{ delta_outbox.state_columns() | join(", ") }}
    from folded
    where {{ shown }}
{%- endmacro %}
