{% macro checked_deliveries_select(state, range) -%}
    {#-
        The rows of the projection that a range can have touched: what is open, and what changed since; where a dead event
        may hold its key, the dead ones too.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
        Columns: those of the projection, and position.
    -#}
    select
        *,
        {{ delta_outbox.position() }} as position
    from {{ state }} version as of {{ range["state_version"] }}
    {%- if not range["whole"] %}
    where
        state in ('PENDING', 'CLAIMED'{{ ", 'DEAD'" if range["any_hold"] }})
        {%- if range["since"] %}
        or changed_at >= {{ "timestamp" ~ delta_outbox.text_literal(range["since"]) }}
        {%- endif %}
    {%- endif %}
{%- endmacro %}
