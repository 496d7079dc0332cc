{% macro checked_rows(state, range) -%}
    {#-
        The rows that the rules are asked over, as the head of a query (`with ...`). Not as temporary views: whoever shares
        the session may have views of their own.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`, with its doubts
    -#}
    {%- set logs = delta_outbox.log_relations() -%}
    {%- set queries = delta_outbox.rows_of_range(state, range) -%}
    {%- do queries.update({
        "outbox_doubtful_events": delta_outbox.doubtful_events(),
        "outbox_doubtful_transitions": delta_outbox.only_doubtful("outbox_new_transitions", range),
        "outbox_doubtful_new_events": delta_outbox.only_doubtful("outbox_new_events", range),
        "outbox_began": delta_outbox.only_doubtful("outbox_open_before", range),
        "outbox_checked_deliveries": delta_outbox.only_doubtful("outbox_touched_deliveries", range),
        "outbox_checked_events": delta_outbox.checked_events_select("outbox_doubtful_new_events", logs.purged, range),
        "outbox_earlier_events": delta_outbox.earlier_events_select(state, range),
        "outbox_checked_transitions": delta_outbox.checked_transitions_select(logs.purged, range),
        "outbox_checked_commands": delta_outbox.checked_commands_select(logs.commands, range),
        "outbox_checked_commits": delta_outbox.rows_of_json(
            range["rewrites"], "log:string,version:bigint,operation:string,problem:string,committed_at:string,details:string"
        ),
    }) -%}
    {%- do queries.update(delta_outbox.lanes_before(range)) -%}
    {%- do queries.update({
        "outbox_checked_appends": delta_outbox.appends_in_range(
            "outbox_new_transitions" if range["broken_appends"] else "(select * from outbox_new_transitions where false)"
        ),
        "outbox_ordered_deliveries": delta_outbox.ordered_deliveries_select(range),
        "outbox_checked_policies": delta_outbox.checked_policies_select(logs.progress, range),
    }) -%}
    {%- if range["workflows"] -%} {%- do queries.update(delta_outbox.checked_workflows(state, range)) -%} {%- endif -%}
    {{ delta_outbox.named_queries(queries) }}
{%- endmacro %}
