{% macro merge_into_state(state) -%}
    {#-
        Merge folded rows into the projection: update only what stands at an earlier position of the transition log or has
        not heard of a kill, insert only deliveries that are new.

        Arguments:
            state: relation, the projection
        Placeholders, so that only what may be touched is looked into:
            __from_states__: list of literals, the states that touched deliveries come from
            __first_arrival__, __last_arrival__: of the events that transitions and kills are about
    -#}
    {%- set columns = delta_outbox.state_columns() -%}
    merge into {{ state }} as t
    using outbox_folded as s
    on
        t.event_id = s.event_id
        and t.arrival = s.arrival
        and t.destination = s.replaces_destination
        and t.state in (__from_states__)
        and t.arrival between __first_arrival__ and __last_arrival__
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
