{% macro touched_deliveries_select(state, range) -%}
    {#-
        The rows of the projection that a range can have touched: what is open, and what changed since; where a dead event
        may hold its key, the dead ones too. Two questions: one with an `or` between the partition and the time would read
        the whole projection.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
        Columns: those of the projection, and position.
    -#}
    {%- set rows = "select *, " ~ delta_outbox.position() ~ " as position from " ~ state ~ " version as of " ~ range["state_version"] -%}
    {%- set open_states = "('PENDING', 'CLAIMED'" ~ (", 'DEAD'" if range["any_hold"] else "") ~ ")" -%}
    {{ rows }}
    {%- if not range["whole"] %}
    where state in {{ open_states }}
    {%- if range["since"] %}
    union all
    {{ rows }}
    where
        state not in {{ open_states }}
        and changed_at >= {{ "timestamp" ~ delta_outbox.text_literal(range["since"]) }}
    {%- endif %}
    {%- endif %}
{%- endmacro %}
