{% macro earlier_events_select(state, range) -%}
    {#-
        The events that a new row of the event log can repeat: what is open or has changed; all of the projection only if
        that does not explain every new row.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`, with its doubts
    -#}
    select event_id, arrival from {{ "outbox_touched_deliveries" if range["whole"] or not range["hidden_events"]
        else state ~ " version as of " ~ range["state_version"] }}
{%- endmacro %}
