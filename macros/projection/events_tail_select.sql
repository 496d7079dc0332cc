{% macro events_tail_select(source, arrival) -%}
    {#- The narrow columns of event rows, read from the change feed (arrival `_commit_version`) or from a snapshot (arrival `_metadata.row_commit_version`). -#}
    select
        event_id,
        event_type,
        ordering_key,
        partition_key,
        created_at,
        coalesce(appended_at, created_at) as appended_at,
        available_at,
        ordinal,
        created_date,
        payload_bytes,
        {{ arrival }} as arrival
    from {{ source }}
{%- endmacro %}
