{% macro first_state(alias) -%}
    {#-
        What the projection holds of an event that nothing has happened to: its columns, in order, as a list for a select.

        An instant that no outbox knows (instant_bounds; only logs of format 1 hold any) becomes one that the rest can read:
        the nearest one for created_at, that for appended_at, and none for available_at, so that the event is claimed. Its
        worker, who reads the row itself, then rejects it.

        twin: python/delta_outbox/delta/files/event_files.py::first_states

        Arguments:
            alias: of a relation with the columns of events_tail_select, and `ambiguous`
    -#}
    {%- set values = {
        "destination": "''", "state": "'PENDING'", "lifecycle": "0", "attempts": "0",
        "publish_attempts": "0", "crashes": "0", "suspect": "0", "epoch": "0", "lane": "0",
        "sequence": "cast(0 as bigint)", "claim_size": "cast(null as int)",
        "created_at": delta_outbox.nearest_instant(alias ~ ".created_at"),
        "appended_at": delta_outbox.instant_or(
            alias ~ ".appended_at", delta_outbox.nearest_instant(alias ~ ".created_at")
        ),
        "available_at": delta_outbox.instant_or(alias ~ ".available_at"),
        "scheduled_at": delta_outbox.instant_or(alias ~ ".available_at"),
    } -%}
    {%- set given = [
        "event_id", "arrival", "event_type", "ordering_key", "partition_key", "ordinal", "ambiguous", "payload_bytes",
    ] -%}
    {%- for column in delta_outbox.state_columns() -%}
    {%- if column in given -%} {{ alias }}.{{ column }}
    {%- elif column in values -%} {{ values[column] }}
    {%- elif column.endswith("_at") -%} cast(null as timestamp)
    {%- else -%} cast(null as string)
    {%- endif %} as {{ column }}{{ ", " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
