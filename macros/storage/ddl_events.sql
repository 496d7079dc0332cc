{% macro ddl_events(relation) -%}
    {#-
        The log that producers append to: one immutable row per event.
    -#}
    create table if not exists {{ relation }} (
        event_id string not null comment 'Globally unique id of the event; its first row in arrival order is the event',
        event_type string not null comment 'Stable, versionable kind of the event, for example order.created',
        payload binary not null comment 'The content to deliver, opaque to the outbox',
        created_at timestamp not null default current_timestamp() comment 'When the event was created (UTC)',
        ordering_key string comment 'Scope within which events are delivered in arrival order',
        partition_key string comment 'Routing hint for the transport; says nothing about order',
        headers map<string, string> comment 'Transport headers, delivered unchanged',
        metadata map<string, string> comment 'Internal annotations; never leave through a publisher',
        available_at timestamp comment 'Not delivered before this time (UTC)',
        ordinal bigint comment 'Order within one commit; null sorts last',
        appended_at timestamp default current_timestamp() comment 'When the row was appended (UTC)',
        created_date date generated always as (cast(created_at as date)) comment 'Partition: date of created_at',
        payload_bytes int generated always as (octet_length(payload)) comment 'Size of the payload; null where the row is of format 1'
    )
    using delta
    partitioned by (created_date)
    tblproperties (
        {{- delta_outbox.log_properties(
            checks=delta_outbox.log_checks("events"),
            extra={"delta.feature.allowColumnDefaults": "supported", "delta.enableRowTracking": "true"},
            statistics=["event_id", "event_type", "created_at", "appended_at", "ordinal"],
        ) }}
    )
{%- endmacro %}
