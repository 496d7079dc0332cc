{% macro blockers_of(ordered, now, unavailable) -%}
    {#-
        The deliveries that block others, once for every set of destinations that they block: a part of `held_by_order`.

        Arguments:
            ordered: relation, deliveries_in_scopes
            now, unavailable: those of `held_by_order`
        Columns: ordering_key, destinations, blocker.
    -#}
    select
        scope.ordering_key as ordering_key,
        -- Every set of destinations that shares one with the blocker.
        explode(
            case
                when scope.destinations = '' then array('')
                else array_union(
                    array_union(array(scope.destinations), split(scope.destinations, '[|]')),
                    filter(
                        all_destinations,
                        several -> arrays_overlap(
                            split(several, '[|]'), split(scope.destinations, '[|]')
                        )
                    )
                )
            end
        ) as destinations,
        struct(
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
        ) as blocker
    from {{ ordered }}
    where
        scope is not null
        and not is_due
        and (state <> 'DEAD' or on_dead = 'hold')
{%- endmacro %}
