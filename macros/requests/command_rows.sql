{% macro command_rows(targets, request, now) -%}
    {#-
        The rows of a command: one per delivery that a request gets.

        twin: python/delta_outbox/workflow_engine/task_requests.py::append

        Arguments:
            targets, request: relations, request_targets and request_row
            now: SQL expression, the time of the request
    -#}
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
        {{ now }} as requested_at
    from {{ targets }} as t
    cross join {{ request }} as r
    where t.refusal is null
{%- endmacro %}
