{% macro deliveries_in_scopes(deliveries, policy_rows, now, unavailable) -%}
    {#-
        Every delivery that waits or may block, with its order scope: a part of `held_by_order`.

        twin: python/delta_outbox/lifecycle/order_scopes.py::scope_of

        Arguments: those of `held_by_order`.
        Columns: those of the projection; position; scope, a struct of ordering_key and destinations (joined by `|`, ''
            for all), null for what neither waits nor blocks; goes_to, its destinations joined by `|`; on_dead, of its
            policy; is_due, of what nobody serves here never.
    -#}
    with relevant as (
        select
            *,
            {{ delta_outbox.position() }} as position
        from {{ deliveries }}
        where
            state in ('PENDING', 'CLAIMED', 'DEAD')
            and (state = 'CLAIMED' or kill_command_id is null)
            and (state <> 'DEAD' or {{ delta_outbox.may_hold() }})
    ),

    event_types as (
        select distinct event_type from relevant
    ),

    policies as (
        {{ delta_outbox.policy_of_event_type("event_types", policy_rows) | indent(8) }}
    ),

    with_policy as (
        select /*+ broadcast(p) */
            d.*,
            p.policy,
            coalesce(nullif(d.destination, ''), p.policy.destination) as goes_to,
            ({{ delta_outbox.destinations_in_order(policy_rows) | indent(12) }}) as in_order
        from relevant as d
        left join policies as p on d.event_type = p.event_type
    )

    select
        * except (policy, in_order),
        case
            when policy.ordering = 'strict' and ordering_key is not null
                then struct(
                    ordering_key,
                    case
                        when policy.order_scope <> 'destination' then ''
                        else coalesce(try_element_at(in_order, split_part(goes_to, '|', 1)), goes_to)
                    end as destinations
                )
        end as scope,
        policy.on_dead as on_dead,
        state = 'PENDING' and policy.destination <> 'workflows' and {{ delta_outbox.is_due(now) }}
        {%- if unavailable is not none %}
        and size(array_except(split(goes_to, '[|]'), split('{{ unavailable }}', '[|]'))) > 0
        {%- endif %} as is_due
    from with_policy
{%- endmacro %}
