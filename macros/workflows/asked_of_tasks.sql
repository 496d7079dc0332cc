{% macro asked_of_tasks() -%}
    {#-
        What operators have asked of the tasks that they have let expire later, or moved: when those expire by it (whether it counts
        for an item is said by its claim, while it is open), and the first kill in the log, by which such a task ends. All other
        kills, those of ordinary events among them, say nothing more than the state of the delivery, and are left out.

        Columns: event_id, arrival, extended_to, kill_command_id, kill_arguments.
    -#}
    with commands as (
        select
            event_id,
            arrival,
            kind,
            command_id,
            arguments,
            named_struct('version', _metadata.row_commit_version, 'command_id', command_id) as position
        from {{ source("outbox", "outbox_commands") }}
        where event_id is not null and (kind = 'extend' or (kind = 'kill' and lifecycle = 0))
    ),

    asked as (
        select
            event_id,
            arrival
        from commands
        where kind = 'extend' or {{ delta_outbox.is_move("arguments") }}
    )

    select /*+ broadcast(a) */
        c.event_id,
        c.arrival,
        max({{ delta_outbox.end_after("c") }}) filter (where c.kind = 'extend') as extended_to,
        min_by(c.command_id, c.position) filter (where c.kind = 'kill') as kill_command_id,
        min_by(c.arguments, c.position) filter (where c.kind = 'kill') as kill_arguments
    from commands as c
    left semi join asked as a
        on
            c.event_id = a.event_id
            and c.arrival = a.arrival
    group by c.event_id, c.arrival
{%- endmacro %}
