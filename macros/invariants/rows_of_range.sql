{% macro rows_of_range(state, range) -%}
    {#-
        What is new in the logs and what the range can have touched in the projection, as a mapping of name to query.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
    -#}
    {%- set logs = delta_outbox.log_relations() -%}
    {%- set events = delta_outbox.rows_in_range(logs.events, range["events_after"], range["events_to"]) -%}
    {%- set transitions = delta_outbox.new_transitions(logs.transitions, range) -%}
    {{ return({
        "outbox_new_events": delta_outbox.events_tail_select(events, "_commit_version"),
        "outbox_new_transitions": transitions,
        "outbox_touched_deliveries": delta_outbox.touched_deliveries_select(state, range),
        "outbox_open_before": delta_outbox.open_before_select(state, range),
    }) }}
{%- endmacro %}
