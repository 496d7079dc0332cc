{% macro open_before_select(state, range) -%}
    {#-
        What was open at the verified position; what was over too where a new transition leaves a terminal state.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
    -#}
    {#- Where everything is checked there is no such position, and the first version of the table may be gone. -#}
    {%- set is_known = range["state_before"] >= 0 -%}
    select *
    from {{ state }} version as of {{ range["state_before"] if is_known else range["state_version"] }}
    where
        {{ "true" if is_known else "false" }}
        and state in ('PENDING', 'CLAIMED'{{ ", 'PUBLISHED', 'DEAD'" if range["leaves_terminal"] }})
{%- endmacro %}
