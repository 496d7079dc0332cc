{% macro broken_by_commits() -%}
    {#- The commits of the logs that are not appends. -#}
    select
        {{ delta_outbox.violation(
            {
                "invariant": "'rewritten_logs'", "problem": "problem", "occurred_at": "cast(committed_at as timestamp)",
            },
            details={
                "log": "log",
                "version": "cast(version as string)",
                "operation": "operation",
                "parameters": "details",
            },
        ) }}
    from outbox_checked_commits
{%- endmacro %}
