{% macro record_verification(progress, range) -%}
    {#-
        An SQL script that writes down how far the logs were checked, at the number that the build expected. Delta lets one
        writer have a number; the others are skipped, or lose (SQLSTATE 2D521) and leave it at that: what they checked is
        checked again.

        Arguments:
            progress: relation, the log of plans
            range: the mapping of `invariant_range`
    -#}
    {%- set plan = {
        "whole": range["whole"],
        "events": {"after": range["events_after"], "to": range["events_to"]},
        "transitions": {"after": range["transitions_after"], "to": range["transitions_to"]},
        "state": {"id": range["state_id"], "version": range["state_version"]},
        "heads": range["heads"],
        "lanes": range["lanes"],
    } -%}
begin
    begin
        declare exit handler for sqlstate '2D521' begin end;
        insert into {{ progress }} {{ delta_outbox.numbered_write("outbox/invariants", range["number"]) }} (writer, number, plan, planned_at, planned_by)
        values (
            'invariants', {{ range["number"] }}, {{ delta_outbox.text_literal(tojson(plan)) }}, {{ delta_outbox.now_utc() }},
            {{ delta_outbox.text_literal("dbt " ~ invocation_id) }}
        );
    end;
end
{%- endmacro %}
