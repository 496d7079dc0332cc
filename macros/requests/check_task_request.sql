{% macro check_task_request(kind, given, checked, problems) -%}
    {#-
        Check the arguments of an operator's request about workflows.

        twin: python/delta_outbox/workflow_engine/task_requests.py::TaskRequest

        Arguments:
            kind: extend, cancel, assign or accept_late
            given: mapping, name of the argument to what came
            checked: mapping, takes what is meant
            problems: list, takes what is wrong
    -#}
    {%- do delta_outbox.check_ids("instances", given.instances, false, checked, problems) -%}
    {%- do delta_outbox.check_ids("task_ids", given.task_ids, false, checked, problems) -%}
    {%- for name in ["workflow", "task", "third_party", "role", "late_task"] -%}
        {%- do delta_outbox.check_part(name, given[name], checked, problems) -%}
    {%- endfor -%}
    {%- for name in ["since", "until", "to"] -%}
        {%- do delta_outbox.check_instant(name, given[name], checked, problems) -%}
    {%- endfor -%}
    {%- do delta_outbox.check_whole("by_seconds", given.by_seconds, 1, 1000000000, checked, problems) -%}
    {%- set narrowing = [given.instances, given.task_ids, given.workflow, given.third_party, given.role] -%}
    {%- if narrowing | select("none") | list | length == narrowing | length -%}
        {%- do delta_outbox.refuse_argument(
            "instances", "must be named, or `task_ids`, a workflow, a third party or a role", none, problems
        ) -%}
    {%- endif -%}
    {%- if given.task is not none and given.workflow is none -%}
        {%- do delta_outbox.refuse_argument("workflow", "must be named with a task", none, problems) -%}
    {%- endif -%}
    {%- if checked.since is not none and checked.until is not none and checked.until <= checked.since -%}
        {%- do delta_outbox.refuse_argument("until", "must be after `since`", given.since ~ " to " ~ given.until, problems) -%}
    {%- endif -%}
    {%- if kind == "extend" and (given.to is none) == (given.by_seconds is none) -%}
        {%- do delta_outbox.refuse_argument(
            "to", "or `by_seconds` must be given, one of them", none if given.to is none else "both", problems
        ) -%}
    {%- endif -%}
    {%- do delta_outbox.check_flag("only_items", given.only_items, checked, problems) -%}
    {%- if kind == "assign" -%}
        {%- if given.assignee is string and not given.assignee -%}
            {%- do checked.update({"assignee": ""}) -%}
        {%- else -%}
            {%- do delta_outbox.check_line("assignee", given.assignee, 200, checked, problems) -%}
        {%- endif -%}
        {%- do delta_outbox.check_flag("only_unassigned", given.only_unassigned, checked, problems) -%}
    {%- else -%}
        {%- do checked.update({"assignee": none, "only_unassigned": false}) -%}
    {%- endif -%}
    {%- do delta_outbox.check_line("reason", given.reason, 500, checked, problems) -%}
    {%- do delta_outbox.check_line("actor", given.actor, 200, checked, problems) -%}
    {%- do delta_outbox.check_flag("dry_run", given.dry_run, checked, problems) -%}
{%- endmacro %}
