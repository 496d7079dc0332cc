{% macro invariant_range(state) -%}
    {#-
        What this build checks: what came to the logs between the verified position, the newest numbered write of
        `invariants` in `outbox_progress`, and where the projection stands. Everything is checked with
        `--vars '{audit: full}'`, the first time, and where the verified position is of no use: the projection is another
        table, or the position is so old that change feeds and old versions may be gone.

        Arguments:
            state: relation, the projection, refreshed
        Result: mapping
            number: of the plan that will say that the range was checked
            whole: whether everything is checked
            is_stale: whether the verified position is older than a day
            latest_versions: of each log that was looked at
            rewrites: commits that are not appends
            events_after, events_to, transitions_after, transitions_to: ranges of commits, first exclusive
            state_before, state_version: versions of the projection at both ends, the first -1 if there is none
            state_id: identity of its table
            events, transitions: how many rows are new
            since: text, the earliest occurred_at of the new transitions
            leaves_terminal, interventions, any_hold: whether a new transition leaves a terminal state, or was asked for by
                an operator; whether a policy says that a dead event holds its key
            has_wrong_size: whether a new claim says another size than it has; broken_appends: how many new appends have a wrong
                number
            versions: list, the policy versions that new transitions name
            purged: whether the range can hold what a purge has removed; purged_lanes: list of epoch, lane, sequence: up to where
                it has removed transitions
            workflows: what of workflows is checked (`workflow_range`), none as long as there are none
            lanes, lanes_before: list of epoch, lane, sequence: the last append of each lane at both ends
    -#}
    {%- set days_kept = 6 -%}
    {%- set logs = delta_outbox.log_relations() -%}
    {#- A relay may refresh the projection meanwhile: all that follows is asked of this version. -#}
    {%- set version = (run_query("describe history " ~ state ~ " limit 1") | list)[0]["version"] | int -%}
    {%- set range = {
        "latest_versions": {}, "rewrites": [], "state_version": version,
        "state_id": (run_query("describe detail " ~ state) | list)[0]["id"],
        "events": 0, "transitions": 0, "since": none, "leaves_terminal": false, "interventions": false, "any_hold": false,
        "has_wrong_size": false, "broken_appends": 0, "versions": [], "purged": false, "purged_lanes": [], "workflows": none,
    } -%}
    {%- set plans = run_query(delta_outbox.invariant_plans(logs.progress, delta_outbox.applied_plan(state, at=version), days_kept)) | list -%}
    {%- set found = plans[0] -%}
    {%- set verified = fromjson(found["verified"]) if found["verified"] else {} -%}
    {%- set nowhere = {"events": {"to": -1}, "transitions": {"to": -1}} -%}
    {%- set projected = fromjson(found["projected"]) if found["projected"] else nowhere -%}
    {%- set audit = var("audit", "") == "full" -%}
    {%- set whole = (
        audit
        or not verified
        or found["long_ago"]
        or verified["state"]["id"] != range["state_id"]
        or verified["state"]["version"] | int > range["state_version"]
        or verified["events"]["to"] | int > projected["events"]["to"] | int
        or verified["transitions"]["to"] | int > projected["transitions"]["to"] | int
    ) -%}
    {%- for name, log in logs.items() -%}
        {%- set after = -1 if audit or not verified else verified["heads"].get(name, -1) | int -%}
        {%- do delta_outbox.look_at_commits(name, log, after, range) -%}
    {%- endfor -%}
    {%- do range.update({
        "number": found["number"] | int + 1,
        "whole": whole,
        "is_stale": found["is_stale"],
        "events_after": -1 if whole else verified["events"]["to"] | int,
        "events_to": projected["events"]["to"] | int,
        "transitions_after": -1 if whole else verified["transitions"]["to"] | int,
        "transitions_to": projected["transitions"]["to"] | int,
        "state_before": -1 if whole else verified["state"]["version"] | int,
        "lanes_before": [] if whole else verified["lanes"],
        "lanes": [] if whole else verified["lanes"],
    }) -%}
    {%- set purged = fromjson(found["purged"]) if found["purged"] -%}
    {%- if range["events_to"] > range["events_after"] or range["transitions_to"] > range["transitions_after"] -%}
        {%- do range.update({"purged_lanes": purged["lanes"] if purged else []}) -%}
        {%- do delta_outbox.count_news(logs, range) -%}
        {%- if purged -%}
            {%- do range.update({"purged": delta_outbox.may_be_purged(purged, range)}) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if found["has_workflows"] -%}
        {%- do delta_outbox.workflow_range(verified, range) -%}
    {%- endif -%}
    {{ return(range) }}
{%- endmacro %}
