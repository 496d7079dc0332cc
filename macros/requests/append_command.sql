{% macro append_command(commands, targets, request, now) -%}
    {#-
        Append a command: one row per delivery that a request gets, in one blind append, which no other writer can beat.

        Arguments:
            commands: relation, the command log
            targets, request: relations, request_targets and request_row
            now: SQL expression, the time of the request
    -#}
    insert into {{ commands }} (
        command_id, kind, event_id, arrival, destination, lifecycle, arguments, actor, reason, requested_at
    )
    select
        r.command_id,
        r.kind,
        t.event_id,
        t.arrival,
        t.destination,
        t.lifecycle,
        t.arguments,
        r.actor,
        r.reason,
        {{ now }}
    from {{ targets }} as t
    cross join {{ request }} as r
    where t.refusal is null
{%- endmacro %}
