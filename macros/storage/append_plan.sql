{% macro append_plan(progress, writer, number, plan) -%}
    {#-
        An SQL script that appends a plan of a numbered writer. Delta lets one writer have a number: who comes later is skipped,
        and who commits at the same time loses (SQLSTATE 2D521). Both have written nothing, and neither is an error.

        Arguments:
            progress: relation, the log of plans
            writer: its name
            number: of the plan
            plan: mapping
    -#}
begin
    declare exit handler for sqlstate '2D521' begin end;
    insert into {{ progress }} {{ delta_outbox.numbered_write("outbox/" ~ writer, number) }} (writer, number, plan, planned_at, planned_by)
    values (
        '{{ writer }}', {{ number }}, {{ delta_outbox.text_literal(tojson(plan)) }}, {{ delta_outbox.now_utc() }},
        {{ delta_outbox.text_literal("dbt " ~ invocation_id) }}
    );
end
{%- endmacro %}
