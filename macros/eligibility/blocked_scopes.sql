{% macro blocked_scopes(deliveries, policy_rows, now, unavailable) -%}
    {#-
        The order scopes in which something blocks what comes after it: nothing that is appended from then on is eligible there.

        Arguments: those of `held_by_order`.
        Columns: those of an order scope, ordering_key and destinations.
    -#}
    with ordered as (
        {{ delta_outbox.deliveries_in_scopes(deliveries, policy_rows, now, unavailable) | indent(8) }}
    )

    select distinct
        scope.ordering_key,
        scope.destinations
    from ordered
    where {{ delta_outbox.blocks_its_scope() }}
{%- endmacro %}
