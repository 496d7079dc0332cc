{% macro ddl_relays(relation) -%}
    {#-
        The heartbeats of relays; ownership of lanes is advisory, the expected sequence is the safety net.

        A relay appends 8,640 beats a day, so Delta itself compacts them, and forgets the commits of the day before yesterday;
        nobody derives anything from them. A beat that is appended as a file compacts nothing; one that makes a checkpoint is
        appended by Spark, which does.

        twin: python/delta_outbox/core/tables.py::BEATS
    -#}
    create table if not exists {{ relation }} (
        relay_id string not null,
        kind string not null comment 'started, alive or stopped',
        lanes array<int> not null comment 'Lanes the relay works on',
        at timestamp not null,
        version string not null comment 'Version of delta-outbox that the relay runs',
        beat_date date generated always as (cast(at as date)) comment 'Partition: date of at',
        driver_id string comment 'The Spark driver through which the relay writes'
    )
    using delta
    partitioned by (beat_date)
    tblproperties (
        {{- delta_outbox.log_properties(
            checks=delta_outbox.log_checks("relays"),
            extra={
                "delta.autoOptimize.autoCompact": "true",
                "delta.logRetentionDuration": "interval 2 days",
                "delta.deletedFileRetentionDuration": "interval 1 days",
            },
        ) }}
    )
{%- endmacro %}
