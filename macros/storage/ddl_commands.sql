{% macro ddl_commands(relation) -%}
    {#-
        The log that operators and endpoints append to: blind appends, applied by whoever appends transitions next.

        twin: python/delta_outbox/core/tables.py::COMMANDS
    -#}
    create table if not exists {{ relation }} (
        command_id string not null comment 'Id of the command; several rows where a filter was expanded',
        kind string not null comment 'replay, kill, release, pause, resume, complete, assign, extend, cancel or accept_late',
        event_id string comment 'The delivery that the command is about',
        arrival bigint,
        destination string,
        lifecycle int comment 'Lifecycle at the time of the request; the command is void once it has moved on',
        arguments string comment 'JSON',
        actor string not null comment 'Who asked',
        reason string not null comment 'Why, in the words of the actor',
        requested_at timestamp not null default current_timestamp(),
        requested_date date generated always as (cast(requested_at as date)) comment 'Partition: date of requested_at'
    )
    using delta
    partitioned by (requested_date)
    tblproperties (
        {{- delta_outbox.log_properties(
            checks=delta_outbox.log_checks("commands"),
            extra={"delta.feature.allowColumnDefaults": "supported", "delta.enableRowTracking": "true"},
        ) }}
    )
{%- endmacro %}
