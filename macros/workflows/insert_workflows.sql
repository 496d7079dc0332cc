{% macro insert_workflows(progress, number, version, rows) -%}
    {#-
        An SQL script that writes a plan of the writer `workflows` at a number that Delta lets one writer have; who is too late
        writes nothing.

        Arguments:
            progress: relation, the log of plans
            number: of the plan
            version: hash of the rows
            rows: mapping of `workflow_rows`
    -#}
begin
    declare exit handler for sqlstate '2D521' begin end;
    insert into {{ progress }} {{ delta_outbox.numbered_write("outbox/workflows", number) }} (writer, number, plan, planned_at, planned_by)
    values (
        'workflows', {{ number }}, {{ delta_outbox.text_literal(tojson({"version": version, "rows": rows})) }}, {{ delta_outbox.now_utc() }},
        {{ delta_outbox.text_literal("dbt " ~ invocation_id) }}
    );
end
{%- endmacro %}
