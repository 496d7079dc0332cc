{% macro unsure_tasks(transitions, state) -%}
    {#-
        The open tasks of which an attempt without a known result is on record: each may have acted. The transition log is read
        from the day on which the oldest of them was triggered, and from one more before it, for clocks may differ.

        twin: python/delta_outbox/workflow_engine/move_reader.py::_UNSURE

        Arguments:
            transitions: relation, the transition log
            state: relation, the projection at a version
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
            select cast(min(created_at) as date) - interval 1 day
            from {{ state }}
            where
                {{ delta_outbox.is_reserved("event_type") }}
                and state in ('PENDING', 'CLAIMED')
                and destination not in ('', 'todo')
        )
{%- endmacro %}
