{% macro asked_of_tasks() -%}
    {#-
        What operators have asked of tasks: when those expire that they let expire later (whether it counts for an item is said by
        its claim, while it is open), and the command by which a task ends that they end, the first in the log.

        Columns: event_id, arrival, extended_to, kill_command_id, kill_arguments.
    -#}
    select
        c.event_id,
        c.arrival,
        max({{ delta_outbox.end_after("c") }}) filter (where c.kind = 'extend') as extended_to,
        min_by(c.command_id, c.position) filter (where c.kind = 'kill') as kill_command_id,
        min_by(c.arguments, c.position) filter (where c.kind = 'kill') as kill_arguments
    from (
        select
            event_id,
            arrival,
            kind,
            command_id,
            arguments,
            named_struct('version', _metadata.row_commit_version, 'command_id', command_id) as position
        from {{ source("outbox", "outbox_commands") }}
        where event_id is not null and (kind = 'extend' or (kind = 'kill' and lifecycle = 0))
    ) as c
    group by c.event_id, c.arrival
{%- endmacro %}
