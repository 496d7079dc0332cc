{% macro longest_waits() -%}
    {#-
        `waits_and_results`, each with the earlier delivery of its scope that was open longest from one point on: a part of
        `broken_by_order`.
    -#}
    with in_scopes as (
        select
            *,
            get(
                filter(
                    steps,
                    one -> is_wait and (since is null or one.at > since) and not (one.stays_open or (one.may_hold and holds))
                ),
                0
            ) as ended,
            collect_set(if(is_wait, struct(since), null)) over (partition by policy_version, ordering_key, scope) as begins
        from (
            {{ delta_outbox.waits_and_results() | indent(12) }}
        )
    ),

    -- Each wait until the append that ended it, each result beside each time at which a wait of its group began.
    in_order as (
        select
            * except (steps, begins),
            explode(
                if(is_wait, array(since), filter(begins, one -> one.since is null or one.since < since).since)
            ) as began
        from in_scopes
    )

    select
        *,
        max(
            if(
                is_wait and coalesce(not ended.is_ended_unsent, true),
                struct(
                    coalesce(ended.at, struct(2147483647 as epoch, 9223372036854775807 as sequence)) as until,
                    event_id,
                    state
                ),
                null
            )
        ) over (
            partition by policy_version, ordering_key, scope, began
            order by position
            range between unbounded preceding and current row
        ) as longest
    from in_order
{%- endmacro %}
