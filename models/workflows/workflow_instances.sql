-- The state `ended` is a literal, so that a question about the others reads nothing of what has ended.
with open_tasks as (
    select * from {{ ref("workflow_tasks") }}
    where delivery_state in ('PENDING', 'CLAIMED')
),

told as (
    {{ delta_outbox.rows_of_derivation("stranded", {"task_id": "string", "message": "string"}) | indent(4) }}
),

stranded as (
    select
        task_id,
        max_by(message, number) as problem
    from told
    group by task_id
),

deliveries as (
    {{ delta_outbox.task_deliveries() | indent(4) }}
),

open_keys as (
    select ordering_key from deliveries
    where state in ('PENDING', 'CLAIMED')
),

ended_keys as (
    select event_id as ordering_key from {{ ref("outbox_state") }}
    where {{ delta_outbox.is_reserved("event_id") }}
),

behind as ( -- noqa: ST03
    {{ delta_outbox.tasks_between("deliveries", ref("outbox_state")) | indent(4) }}
    union all
    -- However long ago; also where another event has the id of the one that would end it.
    select d.*
    from deliveries as d
    inner join stranded as s on d.event_id = s.task_id
    left anti join open_keys as o on d.ordering_key = o.ordering_key
    left anti join ended_keys as e
        on
            d.ordering_key = e.ordering_key
            and not contains(s.problem, concat('''', d.ordering_key, ''''))
    where d.state in ('PUBLISHED', 'DEAD')
),

tasks_behind as ( -- noqa: ST03
    {{ delta_outbox.tasks_of("behind") | indent(4) }}
),

last_behind as (
    {{ delta_outbox.last_of_instances("tasks_behind") | indent(4) }}
),

-- What an operator has ended is told no more of those that are stranded.
given_up as (
    select
        event_id as task_id,
        min(requested_at) as ended_at,
        min_by(concat('Ended by ', actor, ': ', reason), requested_at) as words
    from {{ source("outbox", "outbox_commands") }}
    where kind = 'cancel'
    group by event_id
),

every as (
    select
        workflow,
        instance,
        instance_key,
        version,
        plan,
        {{ delta_outbox.state_of_instance() | indent(8) }} as state,
        task,
        task_id,
        visit,
        {{ delta_outbox.next_moment() | indent(8) }} as next_at,
        expires_at,
        held_by,
        attempts,
        last_error,
        start_event_id,
        started_at,
        last_task,
        last_task_id,
        last_cause,
        last_outcome,
        triggered_at as last_at,
        cast(null as string) as exit,
        cast(null as timestamp) as ended_at,
        cast(null as string) as problem
    from open_tasks
    union all
    select
        b.workflow,
        b.instance,
        b.instance_key,
        b.version,
        b.plan,
        case
            when s.problem is null then 'running'
            when g.task_id is null then 'stranded'
            else 'ended'
        end as state,
        cast(null as string) as task,
        cast(null as string) as task_id,
        cast(null as int) as visit,
        if(s.problem is null, b.changed_at, null) as next_at,
        cast(null as timestamp) as expires_at,
        cast(null as string) as held_by,
        cast(null as int) as attempts,
        cast(null as string) as last_error,
        b.start_event_id,
        b.started_at,
        b.task as last_task,
        b.task_id as last_task_id,
        b.cause as last_cause,
        b.outcome as last_outcome,
        coalesce(g.ended_at, b.changed_at) as last_at,
        cast(null as string) as exit,
        g.ended_at,
        if(s.problem is null, null, concat_ws(' ', s.problem, g.words)) as problem
    from last_behind as b
    left join stranded as s on b.task_id = s.task_id
    left join given_up as g on s.task_id = g.task_id
    union all
    select
        workflow,
        instance,
        instance_key,
        version,
        plan,
        'ended' as state,
        cast(null as string) as task,
        cast(null as string) as task_id,
        cast(null as int) as visit,
        cast(null as timestamp) as next_at,
        cast(null as timestamp) as expires_at,
        cast(null as string) as held_by,
        cast(null as int) as attempts,
        cast(null as string) as last_error,
        start_event_id,
        started_at,
        last_task,
        last_task_id,
        last_cause,
        last_outcome,
        ended_at as last_at,
        exit,
        ended_at,
        cast(null as string) as problem
    from {{ ref("workflow_ends") }}
),

kept_workflows as (
    {{ delta_outbox.kept_rows("railway_workflows") | indent(4) }}
),

final as (
    select /*+ broadcast(k) */
        e.workflow,
        k.title,
        e.instance,
        e.version,
        e.state,
        e.task,
        e.task_id,
        e.visit,
        e.next_at,
        e.expires_at,
        e.held_by,
        e.attempts,
        e.last_error,
        e.started_at,
        e.start_event_id,
        e.last_task,
        e.last_task_id,
        e.last_cause,
        e.last_outcome,
        e.last_at,
        e.exit,
        e.ended_at,
        e.problem,
        e.plan,
        e.instance_key
    from every as e
    left join kept_workflows as k
        on
            e.plan = k.number
            and e.workflow = k.workflow
)

select * from final
