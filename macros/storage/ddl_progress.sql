{% macro ddl_progress(relation) -%}
    {#- The numbered writes of derived writers (projection, policy, invariants, ...): a range is written down before its rows are. -#}
    create table if not exists {{ relation }} (
        writer string not null comment 'Who derives: projection, policy, invariants, commands, destinations, lanes, purge, ...',
        number bigint not null comment 'Number of the plan, without gaps within a writer',
        plan string not null comment 'JSON: the ranges of the logs that the plan covers, or the settings it introduces',
        planned_at timestamp not null,
        planned_by string not null
    )
    using delta
    partitioned by (writer)
    tblproperties (
        {{- delta_outbox.log_properties(checks=delta_outbox.log_checks("progress")) }}
    )
{%- endmacro %}
