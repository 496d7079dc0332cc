{% macro merge_into_state(state, fold, from_states, first_arrival, last_arrival) -%}
    {#-
        Merge folded rows into the projection: update only what stands at an earlier position of the transition log or has
        not heard of a kill, insert
        only deliveries that are new, look only into the partitions that the news comes from, and there only at what may be
        touched.

        Arguments:
            state: relation, the projection
            fold: SQL text of the folded rows
            from_states: list of literals, the states that touched deliveries come from
            first_arrival, last_arrival: of the events that transitions and kills are about
    -#}
    {%- set columns = delta_outbox.state_columns() -%}
    merge into {{ state }} as t
    using (
        {{ fold }}
    ) as s
    on
        t.event_id = s.event_id
        and t.arrival = s.arrival
        and t.destination = s.replaces_destination
        and t.state in ({{ from_states }})
        and t.arrival between {{ first_arrival }} and {{ last_arrival }}
    when
        matched and (
            s.epoch > t.epoch
            or (s.epoch = t.epoch and s.sequence > t.sequence)
            or (s.epoch = t.epoch and s.sequence = t.sequence and s.kill_command_id is not null and t.kill_command_id is null)
        ) then
        update set {% for column in columns %}t.{{ column }} = s.{{ column }}{{ ", " if not loop.last }}{% endfor %}
    when not matched and s.replaces_destination is null then
        insert ({{ columns | join(", ") }})
        values ({% for column in columns %}s.{{ column }}{{ ", " if not loop.last }}{% endfor %})
{%- endmacro %}
