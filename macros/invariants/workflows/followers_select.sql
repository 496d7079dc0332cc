{% macro followers_select(events, span) -%}
    {#-
        The events that numbered writes have made to follow a task: the next one, or the event that ends the instance. What
        anybody else has appended is left out: it has not the instant of a numbered write, or came at another time.

        Arguments:
            events: relation, a version of the event log
            span: mapping of `workflow_range`
        Columns: event_id, arrival, followed_at, and of the task before: task_id, cause, outcome, task, workflow, plan; target,
            where the instance has gone.
    -#}
    with events as (
        select
            event_id,
            event_type,
            ordering_key,
            created_at,
            appended_at,
            metadata,
            _metadata.row_commit_version as arrival,
            from_json(
                cast(payload as string),
                'plan bigint, task string, before struct<task: string, task_id: string, cause: string, outcome: string>'
            ) as body
        from {{ events }}
        where
            ({{ delta_outbox.is_reserved("event_type") }} or {{ delta_outbox.is_reserved("event_id") }})
            and {{ delta_outbox.within_span("created_at", span) }}
    ),

    writes as (
        select
            planned_at,
            cast(get_json_object(plan, '$.rows') as int) as rows,
            cast(get_json_object(plan, '$.range.seen.events') as bigint) as seen,
            lead(cast(get_json_object(plan, '$.range.seen.events') as bigint)) over (order by number) as next_seen
        from {{ source("outbox", "outbox_progress") }}
        where writer = 'derived_events'
        {%- if span["followed_after"] %}
        {#- An hour earlier: what follows may be written by a clock that is behind that of the ending. #}
        and planned_at >= timestamp{{ delta_outbox.text_literal(span["followed_after"]) }} - interval 1 hour
        {%- endif %}
    ),

    made as (
        select /*+ merge(w) */
            e.*,
            {{ delta_outbox.is_reserved("e.event_id") }} as is_end
        from events as e
        left semi join writes as w
            on
                e.appended_at = w.planned_at
                and w.rows > 0
                and e.arrival > w.seen
                and e.arrival <= coalesce(w.next_seen, e.arrival)
    )

    select
        event_id,
        arrival,
        created_at as followed_at,
        if(is_end, metadata['task_id'], body.before.task_id) as task_id,
        if(is_end, metadata['cause'], body.before.cause) as cause,
        if(is_end, metadata['outcome'], body.before.outcome) as outcome,
        if(is_end, metadata['task'], body.before.task) as task,
        {{ delta_outbox.workflow_of("if(is_end, event_id, event_type)") }} as workflow,
        if(is_end, try_cast(metadata['plan'] as bigint), body.plan) as plan,
        if(is_end, event_type, body.task) as target
    from made
    where if(is_end, metadata['task_id'], body.before.task_id) is not null
{%- endmacro %}
