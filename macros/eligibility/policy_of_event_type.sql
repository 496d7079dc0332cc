{% macro policy_of_event_type(event_types, policy_rows) -%}
    {#-
        The first policy row whose pattern matches, for each event type.

        twin: python/delta_outbox/lifecycle/policy.py::match

        Arguments:
            event_types: relation with a column event_type, one row each
            policy_rows: relation, the model policy_rows
    -#}
    select
        t.event_type,
        min_by(
            struct(p.position, p.destination, p.ordering, p.order_scope, p.on_dead, p.expires_after_seconds),
            p.position
        ) as policy
    from {{ event_types }} as t
    inner join {{ policy_rows }} as p
        on t.event_type rlike p.event_type_regex
    group by t.event_type
{%- endmacro %}
