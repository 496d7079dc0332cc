{% macro broken_by_appends() -%}
    {#- The appends to the transition log whose number is missing, was used before, or was used by two commits. -#}
    select
        {{ delta_outbox.violation(
            {
                "invariant": "'broken_sequences'", "problem": "problem",
                "epoch": "epoch", "lane": "lane", "sequence": "sequence", "occurred_at": "occurred_at",
            },
            details={
                "previous_sequence": "cast(previous_sequence as string)",
                "first_commit": "cast(first_commit as string)",
                "last_commit": "cast(last_commit as string)",
                "transitions": "cast(transitions as string)",
            },
        ) }}
    from outbox_checked_appends
    where problem is not null
{%- endmacro %}
