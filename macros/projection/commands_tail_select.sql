{% macro commands_tail_select(source, position) -%}
    {#- The kills in rows of the command log, read from the change feed (position `_commit_version`) or from a snapshot (position `_metadata.row_commit_version`). -#}
    select
        kind,
        event_id,
        arrival,
        destination,
        lifecycle,
        command_id,
        actor,
        reason,
        {{ position }} as position
    from {{ source }}
{%- endmacro %}
