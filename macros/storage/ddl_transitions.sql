{% macro ddl_transitions(relation) -%}
    {#-
        The log that relays append to: one immutable row per state transition, in the total order (epoch, lane, sequence).

        twin: python/delta_outbox/core/tables.py::TRANSITIONS
    -#}
    create table if not exists {{ relation }} (
        epoch int not null comment 'Epoch of the lanes: counts the changes of their number',
        lane int not null comment 'Lane of the event within its epoch',
        sequence bigint not null comment 'Number of the append within its lane, without gaps',
        event_id string not null,
        arrival bigint not null comment 'Commit version of the event log that holds the first row of event_id',
        destination string not null comment 'Destination of this delivery, always by name',
        lifecycle int not null comment '0, then 1 more for each replay',
        attempt int not null comment 'Number of the publish attempt within the lifecycle, assigned by the claim',
        from_state string not null,
        to_state string not null,
        reason string not null comment 'Why: claimed, delivered, failed, rejected, ...',
        claim_id string comment 'The claim that starts or ends with this row',
        relay_id string comment 'The relay that appended the row',
        lease_expires_at timestamp comment 'End of the lease of a claim (UTC)',
        claim_size int comment 'Deliveries under the same claim_id',
        publish_attempts int not null comment 'Attempts of this lifecycle that the publisher answered with failed or unknown, after this row',
        crashes int not null comment 'Crashes of this lifecycle while alone in the claim, after this row',
        suspect int not null comment 'Consecutive claims that ended in a crash or an expired lease, after this row',
        occurred_at timestamp not null comment 'When the transition was decided (UTC)',
        available_at timestamp comment 'Not eligible before this time, after this row (UTC)',
        error string comment 'What went wrong, scrubbed and capped; never payload or secrets',
        receipt string comment 'JSON from the publisher, for example topic, partition and offset',
        outcome string comment 'Outcome of a task',
        outcome_data string comment 'JSON that belongs to the outcome',
        actor string comment 'Who asked, for transitions by an operator',
        command_id string comment 'The command this row applies',
        policy_version string comment 'Version of the delivery policies that decided',
        occurred_date date generated always as (cast(occurred_at as date)) comment 'Partition: date of occurred_at'
    )
    using delta
    partitioned by (lane, occurred_date)
    tblproperties (
        {{- delta_outbox.log_properties(
            checks=delta_outbox.log_checks("transitions"),
            statistics=["epoch", "sequence", "event_id", "occurred_at"],
        ) }}
    )
{%- endmacro %}
