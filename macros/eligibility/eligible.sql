{% macro eligible(deliveries, policy_rows, now) -%}
    {#-
        The deliveries that are eligible now, with their `position`, the order in which they are taken.

        The one statement of eligibility: the view `eligible_events` evaluates it over the projection, the relay over
        projection plus tail. Eligible is due, and blocked by nothing (held_by_order).

        Arguments: those of `held_by_order`.
    -#}
    select * except (blocker)
    from (
        {{ delta_outbox.held_by_order(deliveries, policy_rows, now) | indent(8) }}
    )
    where blocker is null
{%- endmacro %}
