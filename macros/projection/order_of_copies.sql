{% macro order_of_copies() -%}
    {#-
        The order of rows in the event log: arrival (commit version), then within one commit `ordinal` (nulls last),
        `created_at`, `event_id`, then content. The change feed exposes no row ids, so content is the last tie-break.
    -#}
    arrival, ordinal asc nulls last, created_at, event_id, event_type, ordering_key, partition_key, available_at
{%- endmacro %}
