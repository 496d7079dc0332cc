{% macro following_select() -%}
    {#-
        What follows each task that has a follower, and what should. An instance that an operator has moved goes on by a late
        answer, or at a task of another version; one whose task may have acted meanwhile as uncertain.

        Columns: task_id, followers (how many), and of one of them follower, cause, outcome, target; right_target; was_moved.
    -#}
    with targets as (
        {{ delta_outbox.targets_select() | indent(8) }}
    ),

    moves as (
        {{ delta_outbox.moved_tasks() | indent(8) }}
    ),

    told as (
        select /*+ merge(m) */
            f.*,
            m.event_id is not null as was_moved,
            coalesce(f.cause = 'killed' and f.outcome = 'moved', false) as is_moved,
            m.late_task,
            m.late_outcome,
            if(f.plan = m.to_plan, m.to_task, null) as to_task
        from outbox_followers as f
        left join moves as m on f.task_id = m.event_id
    ),

    followers as (
        select
            task_id,
            event_id,
            cause,
            outcome as told_outcome,
            target,
            workflow,
            plan,
            was_moved,
            if(is_moved, late_task, task) as task,
            if(is_moved, late_outcome, outcome) as outcome,
            if(is_moved, to_task, null) as to_task
        from told
    )

    select /*+ broadcast(t) */
        f.task_id,
        count(*) as followers,
        min(f.event_id) as follower,
        min(f.cause) as cause,
        min(f.told_outcome) as outcome,
        min(f.target) as target,
        min(coalesce(f.to_task, t.target)) as right_target,
        max(f.was_moved) as was_moved
    from followers as f
    left join targets as t
        on
            f.plan = t.number
            and f.workflow = t.workflow
            and f.task = t.task
            and f.outcome = t.outcome
    group by f.task_id
{%- endmacro %}
