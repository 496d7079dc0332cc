{% macro verified_position_script(planned_by, accepted={}) -%}
    {#-
        An SQL script that writes the range of the model `verification` down as verified, at the number that it expected.
        Delta lets one writer have a number; the others are skipped, or lose (SQLSTATE 2D521) and leave it at that.

        Arguments:
            planned_by: who, for the record
            accepted: actor and reason, where an operator accepts what the invariants found
        Result: one row, the number.
    -#}
    {%- set verification = delta_outbox.invariants_relation("verification") -%}
    {%- set number = run_query("select number from " ~ verification).rows[0]["number"] | int -%}
    {%- set progress = verification.incorporate(path={"identifier": "outbox_progress"}) -%}
begin
    execute immediate 'set spark.databricks.delta.write.txnAppId = outbox/invariants';
    execute immediate 'set spark.databricks.delta.write.txnVersion = {{ number }}';
    begin
        declare exit handler for sqlstate '2D521' begin end;
        insert into {{ progress }} (writer, number, plan, planned_at, planned_by)
        select
            'invariants',
            {{ number }},
            to_json(
                named_struct(
                    'whole', v.whole,
                    'projection', v.projection_plan,
                    'events', named_struct('after', v.events_after, 'to', v.events_to),
                    'transitions', named_struct('after', v.transitions_after, 'to', v.transitions_to),
                    'state', named_struct('id', v.state_id, 'version', v.state_version),
                    'heads', v.heads,
                    'lanes', l.lanes
                    {%- if accepted %},
                    'accepted', named_struct(
                        'actor', {{ delta_outbox.text_literal(accepted["actor"]) }},
                        'reason', {{ delta_outbox.text_literal(accepted["reason"]) }}
                    )
                    {%- endif %}
                )
            ),
            {{ delta_outbox.now_utc() }},
            {{ delta_outbox.text_literal(planned_by) }}
        from {{ verification }} as v
        cross join (
            select coalesce(collect_list(struct(epoch, lane, sequence)), array()) as lanes
            from (
                select
                    epoch,
                    lane,
                    max(sequence) as sequence
                from (
                    select
                        epoch,
                        lane,
                        sequence
                    from {{ delta_outbox.invariants_relation("checked_transitions") }}
                    union all
                    select inline(lanes) from {{ verification }}
                )
                group by epoch, lane
            )
        ) as l;
    end;
    execute immediate 'reset spark.databricks.delta.write.txnAppId';
    execute immediate 'reset spark.databricks.delta.write.txnVersion';
    select {{ number }} as number;
end
{%- endmacro %}
