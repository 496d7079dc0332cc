{% macro append_pausing(commands, request, now) -%}
    {#-
        Append a command about a destination, not about a delivery: a blind append, which no other writer can beat.

        twin: python/delta_outbox/operations/pauses.py::append_pausing

        Arguments:
            commands: relation, the command log
            request: relation with the one row of `pausing_row`
            now: SQL expression, the time of the request
    -#}
    insert into {{ commands }} (command_id, kind, destination, arguments, actor, reason, requested_at)
    select
        r.command_id,
        r.kind,
        r.destination,
        '{}',
        r.actor,
        r.reason,
        {{ now }}
    from {{ request }} as r
{%- endmacro %}
