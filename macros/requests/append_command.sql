{% macro append_command(commands, targets, request, now) -%}
    {#-
        Append a command: one row per delivery that a request gets, in one blind append, which no other writer can beat.

        Arguments:
            commands: relation, the command log
            targets, request, now: see command_rows
    -#}
    insert into {{ commands }} (
        command_id, kind, event_id, arrival, destination, lifecycle, arguments, actor, reason, requested_at
    )
    {{ delta_outbox.command_rows(targets, request, now) }}
{%- endmacro %}
