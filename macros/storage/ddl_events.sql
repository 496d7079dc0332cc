{% macro ddl_events(relation) -%}
    {#-
        The log that producers append to: one immutable row per event.

        Spark lets any bytes pass as a string. What goes through a text of the JVM and comes back the same is UTF-8; Spark 3.5,
        which may produce as well, has no function that says so.
    -#}
    {%- set text = "concat_ws(' ', event_id, event_type, ordering_key, partition_key)" -%}
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
        created_date date generated always as (cast(created_at as date)) comment 'Partition: date of created_at'
    )
    using delta
    partitioned by (created_date)
    tblproperties (
        {{- delta_outbox.log_properties(
            checks={
                "event_id_given": "length(event_id) > 0",
                "event_type_given": "length(event_type) > 0",
                "text_is_utf8": "decode(encode(" ~ text ~ ", 'UTF-16BE'), 'UTF-16BE') = " ~ text,
            },
            extra={"delta.feature.allowColumnDefaults": "supported"},
            statistics=["event_id", "event_type", "created_at", "appended_at", "ordinal"],
        ) }}
    )
{%- endmacro %}
