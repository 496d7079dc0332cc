{% macro request_passed_keys(targets, state, policy_rows) -%}
    {#-
        How many ordering keys of a replay have later events that were delivered and are not replayed with them: on those
        keys a replay does not restore the order. Only strict events have an order, within their order scope.

        Arguments:
            targets: relation, request_targets
            state: relation, the projection at the same version
            policy_rows: relation, the delivery policies in order
    -#}
    with replayed as (
        select
            event_id,
            arrival,
            destination,
            event_type,
            ordering_key,
            true as is_replayed,
            {{ delta_outbox.position() }} as position
        from {{ targets }}
        where refusal is null and ordering_key is not null
    ),

    delivered as (
        select
            s.event_id,
            s.arrival,
            s.destination,
            s.event_type,
            s.ordering_key,
            false as is_replayed,
            {{ delta_outbox.position() }} as position
        from {{ state }} as s
        left semi join replayed as r on s.ordering_key = r.ordering_key
        left anti join replayed as r
            on
                s.event_id = r.event_id
                and s.arrival = r.arrival
                and s.destination = r.destination
        where s.state = 'PUBLISHED'
    ),

    together as (
        select * from replayed
        union all
        select * from delivered
    ),

    event_types as (
        select distinct event_type from together
    ),

    policies as (
        {{ delta_outbox.policy_of_event_type("event_types", policy_rows) | indent(8) }}
    ),

    by_scope as (
        select
            t.ordering_key,
            min(t.position) filter (where t.is_replayed) as first_replayed,
            max(t.position) filter (where not t.is_replayed) as last_delivered
        from together as t
        inner join policies as p on t.event_type = p.event_type
        where p.policy.ordering = 'strict'
        group by t.ordering_key, if(p.policy.order_scope = 'destination', t.destination, '')
    )

    select count(distinct ordering_key) as passed_keys
    from by_scope
    where last_delivered > first_replayed
{%- endmacro %}
