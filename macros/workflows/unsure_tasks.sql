{% macro unsure_tasks(transitions, tasks) -%}
    {#-
        The tasks of which an attempt without a known result is on record: each may have acted. The transition log is read from the
        day on which the oldest of those that are meant was triggered, and from one more before it, for clocks may differ.

        twin: python/delta_outbox/workflow_engine/move_reader.py::_UNSURE

        Arguments:
            transitions: relation, the transition log
            tasks: name of a query with columns of `workflow_tasks`, the tasks that are meant; join them, for the rows are not only theirs
        Columns: event_id, arrival.
    -#}
    select distinct
        event_id,
        arrival
    from {{ transitions }}
    where
        reason in ('unknown', 'crashed', 'lease_expired')
        and destination <> 'todo'
        and lifecycle = 0
        and occurred_date >= (
            select cast(min(triggered_at) as date) - interval 1 day
            from {{ tasks }}
            where
                attempts > 0
                and destination <> 'todo'
        )
{%- endmacro %}
