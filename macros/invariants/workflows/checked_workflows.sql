{% macro checked_workflows(state, range) -%}
    {#-
        The rows that the rules of workflows are asked over, as a mapping of name to query. Logs are read by a version: in a query
        that reads the change feed of a table too, Spark takes the table itself for it. A killed row that no numbered write
        has made is no task, and nothing follows it.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
    -#}
    {%- set span = range["workflows"] -%}
    {%- set events = source("outbox", "outbox_events") ~ " version as of " ~ range["latest_versions"]["events"] -%}
    {%- set rows = state ~ " version as of " ~ range["state_version"] -%}
    {%- set is_task = delta_outbox.is_task() -%}
    {{- return({
        "outbox_ended_tasks": (
            "select * from " ~ rows ~ " where " ~ is_task ~ " and state = 'PUBLISHED' and "
            ~ delta_outbox.within_span("changed_at", span)
            ~ " union all select /*+ merge(w) */ d.* from " ~ rows ~ " as d left semi join " ~ source("outbox", "outbox_progress")
            ~ " as w on d.appended_at = w.planned_at and w.writer = 'derived_events' where " ~ is_task ~ " and state = 'DEAD' and "
            ~ delta_outbox.within_span("changed_at", span)
        ),
        "outbox_followers": delta_outbox.followers_select(events, span),
        "outbox_stranded_tasks": (
            "select task_id, message, planned_at, number from (" ~ delta_outbox.rows_of_derivation(
                "stranded", {"task_id": "string", "message": "string"}
            ) ~ ") where " ~ (
                "planned_at >= timestamp" ~ delta_outbox.text_literal(span["followed_after"]) ~ " - interval 1 hour"
                if span["followed_after"] else "true"
            )
        ),
        "outbox_retried_deliveries": (
            "select * from outbox_touched_deliveries where " ~ is_task ~ " and attempts > 1 and destination <> 'todo' and "
            ~ ("true" if span["retried_since"] else "false")
        ),
        "outbox_retried_tasks": delta_outbox.tasks_of("outbox_retried_deliveries", hint="merge(e), broadcast(k)", events=events),
        "outbox_retried_attempts": (
            "select /*+ merge(d) */ t.*, sum(if(t.reason in ('unknown', 'crashed', 'lease_expired'), 1, 0)) over ("
            ~ "partition by t.event_id, t.arrival, t.lifecycle order by t.attempt "
            ~ "rows between unbounded preceding and 1 preceding) as unsure_before from "
            ~ source("outbox", "outbox_transitions") ~ " version as of " ~ range["transitions_to"]
            ~ " as t left semi join outbox_retried_deliveries as d on t.event_id = d.event_id and t.arrival = d.arrival "
            ~ "where t.from_state = 'CLAIMED' and t.occurred_date >= date'" ~ (span["retried_since"] or "9999-12-31") ~ "'"
        ),
    }) -}}
{%- endmacro %}
