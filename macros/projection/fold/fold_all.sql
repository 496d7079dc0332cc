{% macro fold_all(state) -%}
    {#-
        The state of every delivery that the tails touch: the projection as it was, folded with what is new.

        The one statement of how transitions become state. The refresh writes its rows into the projection, the relay looks at
        them beside it. Every transition carries the counters after it, so the fold is "the last row of each delivery" and
        never a sum. A kill stays with its delivery until it is applied or void: while it is open in the same lifecycle, or
        DEAD by anything else. `fold_transitions` and `fold_new_events` do the same where the tails hold less.

        Reads the views or common tables outbox_events_tail, outbox_known_events (known_events_select),
        outbox_transitions_tail and outbox_commands_tail.

        Arguments:
            state: relation, the projection before the tails
        Placeholders, which whoever runs the text replaces, so that what is not touched is not read:
            __touched__: the condition on rows of the projection that the tails may touch
            __with_untouched__: true or false, whether to add those rows to which nothing has happened, for whoever puts the
                result in their place
        Columns: those of the projection, and replaces_destination: the destination under which the delivery stands in
            the projection ('' before its first claim), null for a row to insert.
    -#}
    with moved as (
        {{ delta_outbox.moved_deliveries(
            state,
            "(" ~ delta_outbox.first_copies("outbox_events_tail", "outbox_known_events") ~ ")",
            "(" ~ delta_outbox.last_transitions("outbox_transitions_tail") ~ ")",
        ) | indent(8) }}
    ),

    kills as (
        select
            event_id,
            arrival,
            lifecycle,
            collect_list(struct(position, command_id, actor, reason, destination)) as kills
        from outbox_commands_tail
        where kind = 'kill' and event_id is not null
        group by event_id, arrival, lifecycle
    ),

    asked as (
        select
            m.*,
            array_min(filter(k.kills, one -> one.destination in ('', m.destination))) as kill
        from moved as m
        left join kills as k
            on
                m.event_id = k.event_id
                and m.arrival = k.arrival
                and m.lifecycle = k.lifecycle
    )

    select
        {% for column in delta_outbox.state_columns() -%}
        {% if column.startswith("kill_") -%}
        if({{ delta_outbox.may_be_killed() }}, if(kill_command_id is null, kill.{{ column[5:] }}, {{ column }}), null) as {{ column }},
        {% else -%}
        {{ column }},
        {% endif -%}
        {% endfor -%}
        replaces_destination
    from asked
    where is_touched or __with_untouched__ or kill is not null
{%- endmacro %}
