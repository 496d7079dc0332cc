{% macro replace_in_state(state, folded, from_states, first_arrival, last_arrival) -%}
    {#-
        Let folded rows take the place of all that the projection has of some states and arrivals: what merge_into_state
        would do with them, without looking for each row.

        Arguments:
            state: relation, the projection
            folded: rows with the columns of the projection: those that touched deliveries get, and all others that the
                projection has of these states and arrivals
            from_states: list of literals, the states
            first_arrival, last_arrival: the range of arrivals
    -#}
    insert into {{ state }}
    replace where state in ({{ from_states }}) and arrival between {{ first_arrival }} and {{ last_arrival }}
    select {{ delta_outbox.state_columns() | join(", ") }} from {{ folded }}
{%- endmacro %}
