{% macro ddl_purged(relation) -%}
    {#-
        What is left of the deliveries that a purge has removed from the logs: which, and how each had ended. So a purged event
        can be told from one that never was, and a transition that is still there from one of no event.
    -#}
    create table if not exists {{ relation }} (
        number bigint not null comment 'Number of the write of `purge` that removed it',
        event_id string not null,
        arrival bigint not null comment 'Commit version of the event log that held the first row of event_id',
        destination string not null,
        event_type string not null,
        created_at timestamp not null,
        state string not null comment 'PUBLISHED or DEAD',
        ended_at timestamp comment 'When the last transition occurred',
        command_ids array<string> comment 'The commands that were applied to it',
        events_version bigint not null comment 'Version of the event log up to which rows of event_id were removed'
    )
    using delta
    tblproperties (
        {{- delta_outbox.log_properties(
            checks=delta_outbox.log_checks("purged"),
            extra={"delta.enableChangeDataFeed": "false"},
        ) }}
    )
{%- endmacro %}
