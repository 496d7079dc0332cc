{% macro workflow_fallback_problems(where, one, tasks, exit, problems) -%}
    {#-
        What is wrong with where a task leads when nothing is decided: when it has faulted, has expired, or is uncertain.

        twin: python/delta_outbox/railway/checks/paths.py::fallbacks

        Arguments:
            where: text, `workflow.task`
            one: mapping with the row of the task and those of its route
            tasks: mapping, name to such a mapping, all of the workflow
            exit: text, the default exit of the workflow
            problems: list, takes a sentence per problem
    -#}
    {%- set row, category = one["row"], one["row"]["category"] -%}
    {%- set by_cause, outcomes = {}, {} -%}
    {%- for leg in one["route"] -%}
        {%- if leg["cause"] == "decided" -%} {%- do outcomes.update({leg["outcome"]: leg}) -%}
        {%- else -%} {%- do by_cause.update({leg["cause"]: leg}) -%} {%- endif -%}
    {%- endfor -%}
    {%- for cause, noun, needed in [
        ("faulted", "fault", category != "to_do"),
        ("expired", "expiry", not row["never_expires_why"]),
        ("uncertain", "uncertainty", category != "to_do"),
    ] if needed -%}
        {%- set leg = by_cause.get(cause, {"outcome": "", "to_task": "", "to_event": ""}) -%}
        {%- set chosen = outcomes.get(leg["outcome"]) -%}
        {%- if leg["outcome"] and not chosen -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "wrong_outcome", cause ~ " is '" ~ leg["outcome"] ~ "', which it cannot decide.",
                "Its outcomes are " ~ outcomes | join(", ") ~ "; or leave it empty for the default exit."
            ) -%}
        {%- elif not leg["to_task"] and not leg["to_event"] -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, noun ~ "_leads_nowhere", "its " ~ noun ~ " leads nowhere.",
                "Add a row of the cause " ~ cause ~ " with a target."
            ) -%}
        {%- elif chosen and (chosen["to_task"], chosen["to_event"]) != (leg["to_task"], leg["to_event"]) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "wrong_outcome", cause ~ " is '" ~ leg["outcome"] ~ "', and leads elsewhere than it.",
                "Write the target of that outcome, or name another outcome."
            ) -%}
        {%- elif not chosen and (leg["to_task"] or leg["to_event"] != exit) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "wrong_exit",
                "its " ~ noun ~ " has no outcome and leads to " ~ (leg["to_task"] or leg["to_event"]) ~ ".",
                "Name an outcome; without one it leads to the default exit of the workflow."
            ) -%}
        {%- endif -%}
    {%- endfor -%}

    {%- set asked = by_cause.get("uncertain", {}).get("to_task") -%}
    {%- if row["compromise"] == "human" and (not asked or tasks[asked]["row"]["category"] != "to_do") -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "human_without_to_do",
            "its compromise is human, and its uncertainty does not lead to a To-Do item.",
            "Let it lead to a task of the category to_do."
        ) -%}
    {%- endif -%}
{%- endmacro %}
