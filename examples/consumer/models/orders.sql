{{ config(materialized="table", post_hook="{{ announce_orders(this) }}") }}

select
    order_id,
    customer_id,
    amount,
    ordered_at,
    'order-placed-' || order_id as event_id
from {{ ref("raw_orders") }}
