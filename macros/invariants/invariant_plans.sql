{% macro invariant_plans(progress, projection_plan, days_kept) -%}
    {#-
        One row: how far the logs are verified, the plan that the projection stands at, what was last purged, and whether workflows were put into force.

        Arguments:
            progress: relation, the log of plans
            projection_plan: number
            days_kept: how old a verified position may be
    -#}
    select
        max(plan) filter (where writer = 'projection') as projected,
        max_by(plan, number) filter (where writer = 'invariants') as verified,
        coalesce(max(number) filter (where writer = 'invariants'), 0) as number,
        max_by(plan, number) filter (where writer = 'purge') as purged,
        count_if(writer = 'workflows') > 0 as has_workflows,
        coalesce(
            max(planned_at) filter (where writer = 'invariants')
            < {{ delta_outbox.now_utc() }} - interval {{ days_kept }} days,
            false
        ) as long_ago,
        coalesce(
            max(planned_at) filter (where writer = 'invariants') < {{ delta_outbox.now_utc() }} - interval 1 day,
            false
        ) as is_stale
    from {{ progress }}
    where
        writer in ('invariants', 'purge', 'workflows')
        or (writer = 'projection' and number = {{ projection_plan }})
{%- endmacro %}
