{% macro first_state_value(column) -%}
    {#-
        What a column of the projection holds for an event that nothing has happened to, as an expression over the columns of
        events_tail_select.

        Arguments:
            column: name, one of state_columns
    -#}
    {%- set values = {
        "destination": "''", "state": "'PENDING'", "scheduled_at": "available_at", "lifecycle": "0", "attempts": "0",
        "publish_attempts": "0", "crashes": "0", "suspect": "0", "epoch": "0", "lane": "0",
        "sequence": "cast(0 as bigint)", "claim_size": "cast(null as int)",
    } -%}
    {%- set given = [
        "event_id", "arrival", "event_type", "ordering_key", "partition_key", "created_at", "appended_at", "ordinal",
        "ambiguous", "available_at",
    ] -%}
    {%- if column in given -%} a.{{ column }}
    {%- elif column in values -%} {{ values[column] }}
    {%- elif column.endswith("_at") -%} cast(null as timestamp)
    {%- else -%} cast(null as string)
    {%- endif -%}
{%- endmacro %}
