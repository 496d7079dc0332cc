{% macro first_state(alias) -%}
    {#-
        What the projection holds of an event that nothing has happened to: its columns, in order, as a list for a select.

        Arguments:
            alias: of a relation with the columns of events_tail_select, and `ambiguous`
    -#}
    {%- set values = {
        "destination": "''", "state": "'PENDING'", "lifecycle": "0", "attempts": "0",
        "publish_attempts": "0", "crashes": "0", "suspect": "0", "epoch": "0", "lane": "0",
        "sequence": "cast(0 as bigint)", "claim_size": "cast(null as int)",
    } -%}
    {%- set given = [
        "event_id", "arrival", "event_type", "ordering_key", "partition_key", "created_at", "appended_at", "ordinal",
        "ambiguous", "available_at",
    ] -%}
    {%- for column in delta_outbox.state_columns() -%}
    {%- if column in given -%} {{ alias }}.{{ column }}
    {%- elif column == "scheduled_at" -%} {{ alias }}.available_at
    {%- elif column in values -%} {{ values[column] }}
    {%- elif column.endswith("_at") -%} cast(null as timestamp)
    {%- else -%} cast(null as string)
    {%- endif %} as {{ column }}{{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
