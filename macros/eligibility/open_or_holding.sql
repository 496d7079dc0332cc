{% macro open_or_holding(state, policy_rows) -%}
    {#-
        The deliveries that order depends on: the open ones and, only if a policy says `on_dead = hold`, the DEAD ones. The
        partition of DEAD ones is not read otherwise.

        Arguments:
            state: relation, the projection
            policy_rows: relation, the delivery policies
    -#}
    select *
    from {{ state }}
    where
        state in ('PENDING', 'CLAIMED')
        or (state = 'DEAD' and (select coalesce(bool_or(p.on_dead = 'hold'), false) from {{ policy_rows }} as p))
{%- endmacro %}
