{% macro broken_by_follow_ups(span) -%}
    {#-
        The outcomes that nothing follows, or not what the version of the instance says; and what follows no outcome. What was
        purged is passed over: what follows an outcome has its instant.

        Arguments:
            span: mapping of `workflow_range`
    -#}
    with purged as (
        select
            event_id,
            created_at,
            ended_at
        from {{ source("outbox", "outbox_purged") }}
        where {{ delta_outbox.within_span("created_at", span) }} or {{ delta_outbox.within_span("ended_at", span) }}
    ),

    following as (
        {{ delta_outbox.following_select() | indent(8) }}
    ),

    judged as (
        select /*+ merge(f, s, p) */
            e.event_id, e.arrival, e.destination, e.epoch, e.lane, e.sequence, e.changed_at as occurred_at, e.outcome,
            f.follower, f.target, f.right_target,
            case
                when f.followers is null then 'nothing follows it'
                when f.followers > 1 then 'followed more than once'
                when
                    not (f.was_moved and f.cause = 'uncertain')
                    and (
                        f.cause <> {{ delta_outbox.cause_of_ending("e.reason") | indent(24) }}
                        or f.outcome <> coalesce(e.outcome, if(f.was_moved, 'moved', 'default exit'))
                    )
                    then 'followed as if it had ended otherwise'
                when not f.target <=> f.right_target then 'followed by what its version does not say'
            end as problem
        from outbox_ended_tasks as e
        left join following as f on e.event_id = f.task_id
        left anti join outbox_stranded_tasks as s on e.event_id = s.task_id
        left anti join purged as p on e.changed_at = p.created_at
        union all
        select /*+ merge(e, p) */
            f.event_id, f.arrival, null, null, null, null, f.followed_at, f.outcome, f.event_id, f.target, null,
            'follows a task that has not ended' as problem
        from outbox_followers as f
        left anti join outbox_ended_tasks as e on f.task_id = e.event_id
        left anti join purged as p
            on
                f.task_id = p.event_id
                and f.followed_at = p.ended_at
    )

    select
        {{ delta_outbox.violation(
            {
                "invariant": "'wrong_follow_ups'", "problem": "problem", "event_id": "event_id", "arrival": "arrival",
                "destination": "destination", "epoch": "epoch", "lane": "lane", "sequence": "sequence", "occurred_at": "occurred_at",
            },
            details={
                "outcome": "outcome", "follower": "follower", "leads_to": "target", "should_lead_to": "right_target",
            },
        ) }}
    from judged
    where problem is not null
{%- endmacro %}
