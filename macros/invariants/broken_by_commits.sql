{% macro broken_by_commits() -%}
    {#- The commits of the logs that are not appends. -#}
    select
        'rewritten_logs' as invariant,
        problem,
        cast(null as string) as event_id,
        cast(null as bigint) as arrival,
        cast(null as string) as destination,
        cast(null as int) as epoch,
        cast(null as int) as lane,
        cast(null as bigint) as sequence,
        cast(committed_at as timestamp) as occurred_at,
        map_filter(
            map('log', log, 'version', cast(version as string), 'operation', operation, 'parameters', details),
            (name, value) -> value is not null
        ) as details
    from outbox_checked_commits
{%- endmacro %}
