{% macro workflow_route_problems(workflow, where, task, problems) -%}
    {#-
        What is wrong with the rows of a task's route, one by one.

        Arguments:
            workflow: mapping of `workflow_problems`, whose task it is
            where: text, `workflow.task`
            task: mapping with the rows of its route
            problems: list, takes a sentence per problem
    -#}
    {%- set seen = [] -%}
    {%- for row in task["route"] -%}
        {%- set cause, outcome = row["cause"], row["outcome"] -%}
        {%- set is_decided = cause == "decided" -%}
        {%- set key = cause ~ (":" ~ outcome if is_decided else "") -%}
        {%- set never = {
            "faulted": task["row"]["category"] == "to_do",
            "uncertain": task["row"]["category"] == "to_do",
            "expired": task["row"]["never_expires_why"] != "",
        } -%}
        {%- if cause not in ["decided", "faulted", "expired", "uncertain"] -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "no_cause", "the cause of a row is " ~ delta_outbox.shown(cause) ~ ".",
                "Write decided, faulted, expired or uncertain."
            ) -%}
        {%- elif never.get(cause) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "never_happens", "a row says where it leads when it is " ~ cause ~ ", which it never is.",
                "Remove the row."
            ) -%}
        {%- elif key in seen -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "route_twice", "it has two rows for " ~ (outcome if is_decided else cause) ~ ".",
                "Remove one of them."
            ) -%}
        {%- endif -%}
        {%- do seen.append(key) -%}
        {%- if is_decided and not delta_outbox.workflow_is_name(outcome) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "outcome_name", "'" ~ outcome ~ "' is no name.", "Use lower-case words joined by `_`."
            ) -%}
        {%- endif -%}
        {%- if is_decided and not row["to_task"] and not row["to_event"].strip() -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "outcome_leads_nowhere", "outcome '" ~ outcome ~ "' leads nowhere.",
                "Name a task by to_task, or an event type by to_event."
            ) -%}
        {%- elif row["to_task"] and row["to_event"] -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "two_targets", cause ~ " " ~ outcome ~ " leads to " ~ row["to_task"] ~ " and to "
                ~ row["to_event"] ~ ".", "Empty one of them."
            ) -%}
        {%- elif row["to_task"] and row["to_task"] not in workflow["tasks"] -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "target_without_route", (outcome or cause) ~ " leads to " ~ row["to_task"]
                ~ ", which has no row.", "Add it to railway_tasks, or let it lead elsewhere."
            ) -%}
        {%- else -%}
            {%- do delta_outbox.workflow_event_problems(where, row["to_event"], problems) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not (task["route"] | selectattr("cause", "equalto", "decided") | list) -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "no_outcomes", "it has no outcomes.", "Add a row of the cause decided for each."
        ) -%}
    {%- endif -%}
{%- endmacro %}
