{% macro eligible(deliveries, policy_rows, now) -%}
    {#-
        The deliveries that are takeable now, in the order in which they are taken.

        The one statement of eligibility: the view `eligible_events` evaluates it over the projection, the relay over
        projection plus tail. Takeable is PENDING, due, and not behind an earlier open event of its ordering key that is
        not takeable itself. Only strict events wait, and only for strict events.

        Arguments:
            deliveries: relation, the open deliveries (columns of the projection)
            policy_rows: relation, the delivery policies in order
            now: SQL expression, the time of the question
    -#}
    with open_deliveries as (
        select
            *,
            {{ delta_outbox.position() }} as position
        from {{ deliveries }}
        where state in ('PENDING', 'CLAIMED')
    ),

    event_types as (
        select distinct event_type from open_deliveries
    ),

    policies as (
        {{ delta_outbox.policy_of_event_type("event_types", policy_rows) | indent(8) }}
    ),

    with_policy as (
        select /*+ broadcast(p) */
            d.*,
            p.policy.destination as policy_destination,
            p.policy.ordering as ordering,
            case
                when p.policy.ordering = 'strict' and p.policy.order_scope = 'destination'
                    then struct(d.ordering_key as ordering_key, coalesce(nullif(d.destination, ''), p.policy.destination) as destination)
                when p.policy.ordering = 'strict'
                    then struct(d.ordering_key as ordering_key, '' as destination)
            end as order_group,
            d.state = 'PENDING' and coalesce(d.available_at <= {{ now }}, true) as is_due
        from open_deliveries as d
        left join policies as p on d.event_type = p.event_type
    ),

    first_waiting as (
        select
            order_group,
            min(position) as position
        from with_policy
        where
            not is_due
            and ordering_key is not null
            and order_group is not null
        group by order_group
    )

    select with_policy.*
    from with_policy
    left join first_waiting on with_policy.order_group = first_waiting.order_group
    where
        with_policy.is_due
        and (
            first_waiting.position is null
            or with_policy.ordering_key is null
            or with_policy.position <= first_waiting.position
        )
{%- endmacro %}
