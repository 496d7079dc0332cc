{% macro policy_of_event_type(event_types, policy_rows) -%}
    {#-
        The first policy row whose pattern matches, for each event type. No row of the seed is for a task: one that has no
        policy here goes to nobody.

        twin: python/delta_outbox/lifecycle/policy.py::match

        Arguments:
            event_types: relation with a column event_type, one row each
            policy_rows: relation, the model policy_rows
    -#}
    select
        t.event_type,
        coalesce(
            min_by(
                struct(p.position, p.destination, p.ordering, p.order_scope, p.on_dead, p.expires_after_seconds),
                p.position
            ),
            struct(
                0 as position,
                'workflows' as destination,
                'none' as ordering,
                'key' as order_scope,
                'continue' as on_dead,
                null as expires_after_seconds
            )
        ) as policy
    from {{ event_types }} as t
    left join {{ policy_rows }} as p
        on
            t.event_type rlike p.event_type_regex
            and {{ delta_outbox.is_reserved("t.event_type") }} = {{ delta_outbox.is_reserved("p.event_type") }}
    group by t.event_type
{%- endmacro %}
