{% macro last_workflows(until=none) -%}
    {#-
        The number and the version of the workflows in force, both none if there are none.

        Arguments:
            until: number of the last plan that counts; none for all
    -#}
    {{- return(run_query(
        "select max(number) as number, max_by(get_json_object(plan, '$.version'), number) as version from "
        ~ source("outbox", "outbox_progress") ~ " where writer = 'workflows'"
        ~ ("" if until is none else " and number <= " ~ until)
    ).rows | first) -}}
{%- endmacro %}
