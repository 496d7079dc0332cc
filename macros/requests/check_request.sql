{% macro check_request(kind, given, checked, problems) -%}
    {#-
        Check the arguments of an operator's request.

        twin: python/delta_outbox/operations/requests.py::Request

        Arguments:
            kind: replay, kill or release
            given: mapping, name of the argument to what came
            checked: mapping, takes what is meant
            problems: list, takes what is wrong
    -#}
    {%- if kind == "replay" -%}
        {%- do delta_outbox.check_choice("state", given.state, ["DEAD", "PUBLISHED"], checked, problems) -%}
        {%- do delta_outbox.check_glob("event_type", given.event_type, checked, problems) -%}
        {%- do delta_outbox.check_instant("since", given.since, checked, problems) -%}
        {%- do delta_outbox.check_instant("until", given.until, checked, problems) -%}
        {%- do delta_outbox.check_ids("event_ids", given.event_ids, false, checked, problems) -%}
        {%- do delta_outbox.check_part("error", given.error, checked, problems) -%}
        {%- if checked.since is not none and checked.until is not none and checked.until <= checked.since -%}
            {%- do delta_outbox.refuse_argument(
                "until", "must be after `since`", given.since ~ " to " ~ given.until, problems
            ) -%}
        {%- endif -%}
        {%- set names = ["event_type", "since", "until", "event_ids", "error"] -%}
        {%- set filters = [] -%}
        {%- for name in names if given[name] is not none -%} {%- do filters.append(name) -%} {%- endfor -%}
        {%- do delta_outbox.check_flag("everything", given.everything, checked, problems) -%}
        {%- if checked.everything and filters -%}
            {%- do delta_outbox.refuse_argument(
                "everything", "must not come with a filter", filters | join(", "), problems
            ) -%}
        {%- endif -%}
        {%- if checked.state == "PUBLISHED" and not checked.everything and not filters -%}
            {%- do delta_outbox.refuse_argument(
                "state", "PUBLISHED needs a filter (" ~ names | join(", ") ~ ") or `everything`", none, problems
            ) -%}
        {%- endif -%}
    {%- else -%}
        {%- do delta_outbox.check_ids("event_ids", given.event_ids, kind == "kill", checked, problems) -%}
        {%- if kind == "release" -%}
            {%- do delta_outbox.check_ids("claim_ids", given.claim_ids, false, checked, problems) -%}
        {%- endif -%}
    {%- endif -%}
    {%- do delta_outbox.check_line("reason", given.reason, 500, checked, problems) -%}
    {%- do delta_outbox.check_line("actor", given.actor, 200, checked, problems) -%}
    {%- do delta_outbox.check_flag("dry_run", given.dry_run, checked, problems) -%}
{%- endmacro %}
