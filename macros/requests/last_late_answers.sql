{% macro last_late_answers(state) -%}
    {#-
        The late answers that count: of each task of an instance, the first answer to its last visit that has ended as expired or
        uncertain without it, unless a later visit was decided.

        twin: python/delta_outbox/workflow_engine/instances.py::late_answers_of

        Argument: relation, the projection at a version.
        Columns: instance_key, task, task_id and arguments, of the command.
    -#}
    with answers as (
        select
            *,
            named_struct('version', _metadata.row_commit_version, 'command_id', command_id) as position
        from {{ source("outbox", "outbox_commands") }}
        where
            kind = 'complete'
            and get_json_object(arguments, '$.outcome') is not null
    ),

    answered as (
        select
            d.ordering_key as instance_key,
            d.event_id as task_id,
            {{ delta_outbox.within_workflow("d.event_type") }} as task,
            d.created_at as triggered_at,
            min_by(a.arguments, a.position) as arguments
        from answers as a
        inner join {{ state }} as d
            on
                a.event_id = d.event_id
                and a.arrival = d.arrival
                and a.lifecycle = d.lifecycle
        left anti join {{ state }} as later
            on
                d.ordering_key = later.ordering_key
                and d.event_type = later.event_type
                and later.state = 'PUBLISHED'
                and later.reason = 'completed'
                and d.created_at < later.created_at
        where
            {{ delta_outbox.is_reserved("d.event_type") }}
            and not d.ambiguous
            and d.state = 'PUBLISHED'
            and d.reason in ('expired', 'uncertain')
        group by d.ordering_key, d.event_id, d.event_type, d.created_at
    )

    select
        instance_key,
        task,
        max_by(task_id, triggered_at) as task_id,
        max_by(arguments, triggered_at) as arguments
    from answered
    group by instance_key, task
{%- endmacro %}
