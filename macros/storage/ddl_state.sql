{% macro ddl_state(relation) -%}
    {#- The projection: one narrow row per delivery, derived from the logs and rebuilt from them at any time. -#}
    create table if not exists {{ relation }} (
        event_id string not null,
        arrival bigint not null comment 'Commit version of the event log that holds the first row of event_id',
        destination string not null comment 'Empty until the first claim fixes the destinations',
        state string not null,
        event_type string not null,
        ordering_key string,
        partition_key string,
        created_at timestamp not null,
        appended_at timestamp,
        ordinal bigint,
        scheduled_at timestamp comment 'available_at as the producer gave it',
        ambiguous boolean not null comment 'The commit of its arrival holds another row of event_id, so reading the payload needs a tie-break',
        lifecycle int not null,
        attempts int not null,
        publish_attempts int not null,
        crashes int not null,
        suspect int not null,
        available_at timestamp,
        last_error string,
        reason string comment 'Reason of the last transition',
        claimed_at timestamp,
        claimed_by string,
        claim_id string,
        claim_size int,
        lease_expires_at timestamp,
        published_at timestamp,
        replayed_at timestamp,
        changed_at timestamp comment 'When the last transition occurred',
        outcome string,
        kill_command_id string comment 'A kill of this lifecycle that an operator has asked for and that is not applied yet',
        kill_actor string,
        kill_reason string,
        policy_version string,
        epoch int not null comment 'Position of the last transition; 0, 0, 0 before the first',
        lane int not null,
        sequence bigint not null,
        payload_bytes int comment 'Size of the payload; null where its row is of format 1'
    )
    using delta
    partitioned by (state)
    tblproperties (
        'delta_outbox.format_version' = "{{ delta_outbox.format_version() }}",
        'delta.checkpointInterval' = "50",
        'delta.dataSkippingStatsColumns' = "event_id,arrival,event_type,created_at,changed_at",
        'delta.autoOptimize.autoCompact' = "false"
    )
{%- endmacro %}
