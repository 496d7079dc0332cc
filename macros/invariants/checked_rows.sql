{% macro checked_rows(state, range) -%}
    {#-
        The rows that the rules are asked over, as the head of a query (`with ...`). Not as temporary views: whoever shares
        the session may have views of their own.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
    -#}
    {%- set logs = delta_outbox.log_relations() -%}
    {%- set transitions = delta_outbox.rows_in_range(logs.transitions, range["transitions_after"], range["transitions_to"]) -%}
    {%- set events = delta_outbox.rows_in_range(logs.events, range["events_after"], range["events_to"]) -%}
    {%- set first = {
        "outbox_checked_deliveries": delta_outbox.checked_deliveries_select(state, range),
        "outbox_checked_events": delta_outbox.checked_events_select(events, logs.purged, range),
    } -%}
    {%- set rest = {
        "outbox_earlier_events": delta_outbox.earlier_events_select(state, range, delta_outbox.named_queries(first)),
        "outbox_checked_log": "select * from " ~ transitions,
        "outbox_checked_transitions": delta_outbox.checked_transitions_select(transitions, state, logs.purged, range),
        "outbox_checked_lanes": delta_outbox.rows_of_json(range["lanes_before"], "epoch:int,lane:int,sequence:bigint"),
        "outbox_purged_lanes": delta_outbox.rows_of_json(range["purged_lanes"], "epoch:int,lane:int,sequence:bigint"),
        "outbox_checked_commits": delta_outbox.rows_of_json(
            range["rewrites"], "log:string,version:bigint,operation:string,problem:string,committed_at:string,details:string"
        ),
        "outbox_checked_commands": delta_outbox.checked_commands_select(logs.commands, range),
        "outbox_checked_policies": delta_outbox.checked_policies_select(logs.progress, range),
    } -%}
    {%- if range["workflows"] -%} {%- do rest.update(delta_outbox.checked_workflows(state, range)) -%} {%- endif -%}
    {{ delta_outbox.named_queries(dict(first, **rest)) }}
{%- endmacro %}
