{{ config(materialized="view") }}

select
    orders.order_id,
    orders.customer_id,
    letters.destination,
    letters.dead_at,
    letters.reason,
    letters.last_error
from {{ ref("orders") }} as orders
inner join {{ ref("delta_outbox", "dead_letters") }} as letters on orders.event_id = letters.event_id
