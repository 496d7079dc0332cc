{% macro workflow_time_problems(workflow, row, where, seconds, problems) -%}
    {#-
        What is wrong among the times of a task, each right by itself.

        twin: python/delta_outbox/railway/checks/tasks.py::LONGEST_TIME_LIMIT

        Arguments:
            workflow: mapping of `workflow_problems`, whose task it is
            row: of railway_tasks
            where: text, `workflow.task`
            seconds: mapping of the spans that are right to their numbers
            problems: list, takes a sentence per problem
    -#}
    {%- set lease = delta_outbox.workflow_seconds(workflow["row"]["lease_seconds"]) -%}
    {%- if lease and seconds.get("time_limit", 0) >= lease -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "time_limit_too_long",
            "its time limit is " ~ row["time_limit_seconds"] ~ " s, and the lease " ~ workflow["row"]["lease_seconds"] ~ " s.",
            "Shorten the limit, or give the workflow a longer lease: a claim must outlast its attempt."
        ) -%}
    {%- elif seconds.get("time_limit", 0) > 11 * 3600 -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "time_limit_too_long",
            "its time limit is " ~ row["time_limit_seconds"] ~ " s, and no claim holds a look-up and a call of more than 39600 s.",
            "Shorten the limit: let one task ask for the work, and another one look whether it is done."
        ) -%}
    {%- endif -%}
    {%- if "key_valid_for" in seconds and "time_limit" in seconds and "settles_within" in seconds
        and seconds["key_valid_for"] <= seconds["time_limit"] + seconds["settles_within"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "key_valid_too_short",
            "a key is valid for " ~ row["key_valid_for_seconds"] ~ " s, and one attempt may need "
            ~ "%g" % (seconds["time_limit"] + seconds["settles_within"]) ~ " s until it has settled.",
            "Shorten time_limit_seconds or settles_within_seconds, or choose another category."
        ) -%}
    {%- endif -%}
    {%- if "due" in seconds and "expires" in seconds and seconds["due"] >= seconds["expires"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "due_after_expiry", "it is due after " ~ row["due_seconds"] ~ " s, when it has expired.",
            "Let it expire later, or be due sooner."
        ) -%}
    {%- endif -%}
{%- endmacro %}
