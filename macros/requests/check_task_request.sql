{% macro check_task_request(kind, given, checked, problems) -%}
    {#-
        Check the arguments of an operator's request about workflows.

        twin: python/delta_outbox/workflow_engine/task_requests.py::TaskRequest

        Arguments:
            kind: extend, cancel, assign or accept_late
            given: mapping, name of the argument to what came; what the operation does not take is left out
            checked: mapping, takes what is meant
            problems: list, takes what is wrong
    -#}
    {%- set asked = {"third_party": none, "only_items": false, "to": none, "by_seconds": none, "late_task": none} -%}
    {%- do asked.update(given) -%}
    {%- do delta_outbox.check_ids("instances", asked.instances, false, checked, problems) -%}
    {%- do delta_outbox.check_ids("task_ids", asked.task_ids, false, checked, problems) -%}
    {%- for name in ["workflow", "task", "third_party", "role", "late_task"] -%}
        {%- do delta_outbox.check_part(name, asked[name], checked, problems) -%}
    {%- endfor -%}
    {%- for name in ["since", "until", "to"] -%}
        {%- do delta_outbox.check_instant(name, asked[name], checked, problems) -%}
    {%- endfor -%}
    {%- do delta_outbox.check_whole("by_seconds", asked.by_seconds, 1, 1000000000, checked, problems) -%}
    {%- set narrowing = [asked.instances, asked.task_ids, asked.workflow, asked.third_party, asked.role] -%}
    {%- if narrowing | select("none") | list | length == narrowing | length -%}
        {%- do delta_outbox.refuse_argument(
            "instances", "must be named, or `task_ids`, a workflow, a third party or a role", none, problems
        ) -%}
    {%- endif -%}
    {%- if asked.task is not none and asked.workflow is none -%}
        {%- do delta_outbox.refuse_argument("workflow", "must be named with a task", none, problems) -%}
    {%- endif -%}
    {%- if checked.since is not none and checked.until is not none and checked.until <= checked.since -%}
        {%- do delta_outbox.refuse_argument("until", "must be after `since`", asked.since ~ " to " ~ asked.until, problems) -%}
    {%- endif -%}
    {%- if kind == "extend" and (asked.to is none) == (asked.by_seconds is none) -%}
        {%- do delta_outbox.refuse_argument(
            "to", "or `by_seconds` must be given, one of them", none if asked.to is none else "both", problems
        ) -%}
    {%- endif -%}
    {%- do delta_outbox.check_flag("only_items", asked.only_items, checked, problems) -%}
    {%- if kind == "assign" -%}
        {%- if asked.assignee is string and not asked.assignee -%}
            {%- do checked.update({"assignee": ""}) -%}
        {%- else -%}
            {%- do delta_outbox.check_line("assignee", asked.assignee, 200, checked, problems) -%}
        {%- endif -%}
        {%- do delta_outbox.check_flag("only_unassigned", asked.only_unassigned, checked, problems) -%}
    {%- else -%}
        {%- do checked.update({"assignee": none, "only_unassigned": false}) -%}
    {%- endif -%}
    {%- do delta_outbox.check_line("reason", asked.reason, 500, checked, problems) -%}
    {%- do delta_outbox.check_line("actor", asked.actor, 200, checked, problems) -%}
    {%- do delta_outbox.check_flag("dry_run", asked.dry_run, checked, problems) -%}
{%- endmacro %}
