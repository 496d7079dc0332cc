{% macro workflow_range(verified, range) -%}
    {#-
        Note what of workflows this build checks: nothing as long as none were put into force.

        What an outcome leads to is written a moment later, so outcomes are checked up to an hour (clocks may differ) before the
        last numbered write of `derived_events` that had read all transitions, and whose rows are there. An outcome and what follows
        it have one instant, so a span of time tells which belong together.

        Arguments:
            verified: mapping, the verified position
            range: the mapping of `invariant_range`, its state_version and whole known; takes `workflows`: followed_after,
                followed_to (text, instants; none: all, nothing), written_after, written_to (numbers), retried_since (text, a
                date; none: no task that calls somebody was attempted again)
    -#}
    {%- set before = verified.get("workflows") or {} -%}
    {%- set written = before.get("written_to", 0) | int -%}
    {%- set found = run_query(
        "select coalesce(max(number), " ~ written ~ ") as written, "
        ~ "cast(max(planned_at) filter (where all_transitions and (rows = 0 or number < newest)) - interval 1 hour as string) as followed "
        ~ "from (select number, planned_at, max(number) over () as newest, "
        ~ "get_json_object(plan, '$.range.all_transitions') = 'true' as all_transitions, "
        ~ "cast(get_json_object(plan, '$.rows') as int) as rows "
        ~ "from " ~ source("outbox", "outbox_progress") ~ " where writer = 'derived_events' and number >= " ~ written ~ ")"
    ).rows[0] -%}
    {%- set retried = run_query(
        "select cast(min(cast(created_at as date)) as string) as since from " ~ ref("outbox_state")
        ~ " version as of " ~ range["state_version"] ~ " where " ~ delta_outbox.is_reserved("event_type")
        ~ " and attempts > 1 and destination <> 'todo'"
        ~ ("" if range["whole"] else " and changed_at >= timestamp" ~ delta_outbox.text_literal(range["since"] or "9999-12-31"))
    ).rows[0] -%}
    {%- do range.update({"workflows": {
        "followed_after": none if range["whole"] else before.get("followed_to"),
        "followed_to": found["followed"] or before.get("followed_to"),
        "written_after": 0 if range["whole"] else written,
        "written_to": found["written"] | int,
        "retried_since": retried["since"],
    }}) -%}
{%- endmacro %}
