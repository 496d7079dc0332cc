{% macro earlier_events_select(state, range, checked) -%}
    {#-
        The events that a new row of the event log can repeat: what is open or has changed; all of the projection only if
        that does not explain every new row.

        Arguments:
            state: relation, the projection
            range: the mapping of `invariant_range`
            checked: text that names `outbox_checked_events` and `outbox_checked_deliveries`, before a select
    -#}
    {%- set unexplained -%}
        {{ checked }}
        select /*+ merge(d) */ 1
        from outbox_checked_events as e
        left anti join outbox_checked_deliveries as d
            on
                e.event_id = d.event_id
                and e.arrival >= d.arrival
        limit 1
    {%- endset -%}
    {%- if range["whole"] or not range["events"] or not run_query(unexplained) | list -%}
        select event_id, arrival from outbox_checked_deliveries
    {%- else -%}
        select event_id, arrival from {{ state }} version as of {{ range["state_version"] }}
    {%- endif -%}
{%- endmacro %}
