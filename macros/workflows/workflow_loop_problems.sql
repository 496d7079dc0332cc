{% macro workflow_loop_problems(where, one, problems) -%}
    {#-
        What a task on a loop lacks: each visit needs an identifier and an end of its own.

        twin: python/delta_outbox/railway/checks/paths.py::loops

        Arguments:
            where: text, `workflow.task`
            one: mapping with the row of the task, and what an answer may name (`answers`)
            problems: list, takes a sentence per problem
    -#}
    {%- set row = one["row"] -%}
    {%- if "visit" not in delta_outbox.workflow_template(row["identifier"])["fields"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "loop_without_visit",
            "it lies on a loop, and every visit has the identifier '" ~ row["identifier"] ~ "'.", "Add `{visit}`."
        ) -%}
    {%- endif -%}
    {%- if row["never_expires_why"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "loop_never_expires", "it lies on a loop and never expires.",
            "Write a number of seconds into `expires_seconds`."
        ) -%}
    {%- endif -%}
    {%- if row["category"] == "to_do" and row["told_apart_by"] not in one["answers"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "loop_answers_look_alike",
            "it lies on a loop, and its contract has no field that tells the visits apart.",
            "Name one by `told_apart_by`, such as the id of the payment; else a late answer counts for the next visit."
        ) -%}
    {%- endif -%}
{%- endmacro %}
