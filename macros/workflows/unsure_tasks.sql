{% macro unsure_tasks(transitions) -%}
    {#-
        The tasks of which an attempt without a known result is on record: it may have acted.

        twin: python/delta_outbox/workflow_engine/move_reader.py::_UNSURE

        Argument: relation, the transition log.
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
{%- endmacro %}
