{% macro broken_by_attempts() -%}
    {#-
        The attempts of black boxes that came after one which may have acted, and should not: their compromise did not allow
        another call, or they say of the task what nobody can know. Of other categories the log does not say what a look-up
        has found.
    -#}
    with judged as (
        select /*+ merge(b) */
            a.*,
            b.compromise,
            inline({{ delta_outbox.judged([
                (
                    "repeated_calls",
                    "case when a.unsure_before >= case when b.compromise = 'at_least_once' then 1000000000"
                    ~ " when b.compromise like 'up_to_%' then cast(substr(b.compromise, 7) as int) else 1 end"
                    ~ " and a.reason in ('completed', 'failed', 'unknown') then 'called again after it may have acted' end"
                ),
                (
                    "guessed_endings",
                    "case when a.unsure_before > 0 and a.to_state = 'PUBLISHED' and a.reason in ('rejected', 'exhausted', 'expired')"
                    ~ " then 'ended as not done after it may have acted' end"
                ),
            ]) | indent(12) }})
        from outbox_retried_attempts as a
        inner join outbox_retried_tasks as b
            on
                a.event_id = b.task_id
                and a.arrival = b.arrival
        where
            b.category = 'black_box'
            and a.unsure_before > 0
    )

    select
        {{ delta_outbox.violation(
            {
                "invariant": "invariant", "problem": "problem", "event_id": "event_id", "arrival": "arrival", "destination": "destination",
                "epoch": "epoch", "lane": "lane", "sequence": "sequence", "occurred_at": "occurred_at",
            },
            details={
                "reason": "reason", "attempt": "cast(attempt as string)", "unsure_before": "cast(unsure_before as string)",
                "compromise": "compromise",
            },
        ) }}
    from judged
{%- endmacro %}
