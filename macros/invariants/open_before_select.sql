{% macro open_before_select(state, range) -%}
    {#-
        What was open at the verified position; what was over too where a new transition leaves a terminal state.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
    -#}
    select *
    from {{ state }} version as of {{ [range["state_before"], 0] | max }}
    where
        {{ "true" if range["state_before"] >= 0 else "false" }}
        and state in ('PENDING', 'CLAIMED'{{ ", 'PUBLISHED', 'DEAD'" if range["leaves_terminal"] }})
{%- endmacro %}
