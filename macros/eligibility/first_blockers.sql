{% macro first_blockers(ordered, now, unavailable) -%}
    {#-
        Of each order scope the first delivery that blocks others: a part of `held_by_order`.

        Arguments:
            ordered: relation, deliveries_in_scopes
            now, unavailable: those of `held_by_order`
        Columns: scope, blocker.
    -#}
    select
        scope,
        min(struct(
            position,
            event_id,
            case
                when state = 'CLAIMED' then 'claimed'
                when state = 'DEAD' then 'held'
                {%- if unavailable is not none %}
                when {{ delta_outbox.is_due(now) }} then 'unavailable'
                {%- endif %}
                when attempts > 0 then 'retrying'
                else 'scheduled'
            end as reason,
            greatest(appended_at, changed_at) as since,
            case
                when state = 'CLAIMED' then lease_expires_at
                when state = 'PENDING' then available_at
            end as next_due
        )) as blocker
    from {{ ordered }}
    where {{ delta_outbox.blocks_its_scope() }}
    group by scope
{%- endmacro %}
