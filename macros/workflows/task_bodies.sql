{% macro task_bodies(events) -%}
    {#-
        What the events of tasks say.

        Arguments:
            events: relation, the event log, or a version of it
        Columns: event_id, arrival, created_date, and body, a struct of what their payload holds.
    -#}
    select
        event_id,
        _metadata.row_commit_version as arrival,
        created_date,
        from_json(
            cast(payload as string),
            'plan bigint, version int, task string, visits map<string, int>, expires_at timestamp, due_at timestamp, accepted array<string>, '
            || 'start struct<event_id: string, started_at: timestamp>, '
            || 'before struct<task: string, task_id: string, cause: string, outcome: string>'
        ) as body
    from {{ events }}
    where {{ delta_outbox.is_reserved("event_type") }}
{%- endmacro %}
