{% macro held_by_order(deliveries, policy_rows, now, unavailable=none) -%}
    {#-
        Every delivery that is due, with the first one that blocks it, if any does.

        The one statement of order. Due is PENDING, not killed, and `available_at <= now` or null. A due delivery is blocked
        by the first delivery of its order scope before it that is not eligible itself: one that backs off, is scheduled, is
        claimed, or is DEAD under `on_dead = hold`. A killed one blocks nothing, unless it is still in flight. Only strict
        events with an ordering key wait, and only for such. An order scope is the ordering key; under
        `order_scope = destination` it is the key within each destination, where those that share an event are one
        (destinations_in_order).

        Arguments:
            deliveries: relation, the open deliveries, and the DEAD ones where a policy holds (open_or_holding)
            policy_rows: relation, the delivery policies in order
            now: SQL expression, the time of the question
            unavailable: names joined by `|`, the destinations that nothing is to be claimed for: what goes to no other one
                is not eligible, and blocks its key. Left out, as in the views, all are available.
        Columns: those of the projection; position; where `unavailable` is given also scope and goes_to, the
            destinations joined by `|`; and blocker, null for what is eligible: a struct of position, event_id,
            reason (retrying, scheduled, claimed, held, unavailable), since (when it began to block others for this reason) and
            next_due (when it is due again, or its lease ends; null if only an operator can help).
    -#}
    with ordered as (
        {{ delta_outbox.deliveries_in_scopes(deliveries, policy_rows, now, unavailable) | indent(8) }}
    ),

    first_blockers as (
        {{ delta_outbox.first_blockers("ordered", now, unavailable) | indent(8) }}
    )

    select
        ordered.* except ({{ "scope, goes_to, " if unavailable is none }}on_dead, is_due),
        case when first_blockers.blocker.position < ordered.position then first_blockers.blocker end as blocker
    from ordered
    left join first_blockers on ordered.scope = first_blockers.scope
    where ordered.is_due
{%- endmacro %}
