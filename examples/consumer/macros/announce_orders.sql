{% macro announce_orders(orders) -%}
    {#-
        Append an event for every order that has none yet. It looks for them in the projection, which the same build has
        refreshed before, and not in the log: an insert that reads nothing of the log never conflicts with other producers.
        Should it come too late all the same, the second copy of an event is never delivered. What was purged is there no
        more, but on record.
    -#}
    insert into {{ source("outbox", "outbox_events") }} (event_id, event_type, ordering_key, payload, created_at)
    select
        o.event_id,
        'order.placed',
        'customer-' || o.customer_id,
        cast(to_json(struct(o.order_id, o.customer_id, o.amount)) as binary),
        o.ordered_at
    from {{ orders }} as o
    left anti join {{ ref("delta_outbox", "outbox_state") }} as s on o.event_id = s.event_id
    left anti join {{ source("outbox", "outbox_purged") }} as p on o.event_id = p.event_id
{%- endmacro %}
