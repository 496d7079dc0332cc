{% macro lives_in_scopes() -%}
    {#-
        `lives_of_keys` under each version of the policies that decided, and in each order scope that they belong to: a part of
        `broken_by_order`.

        Columns: those of `lives_of_keys`; policy_version; holds, whether a dead one holds its key; scope, a destination or ''
            for all; is_too_old.
    -#}
    select
        k.*,
        p.policy_version,
        p.policy.on_dead = 'hold' as holds,
        explode(
            case
                when p.policy.order_scope <> 'destination' then array('')
                when k.destination = '' then split(p.policy.destination, '[|]')
                else array(k.destination)
            end
        ) as scope,
        k.state in ('PENDING', 'CLAIMED')
        and coalesce({{ delta_outbox.is_too_old("k.age_from", delta_outbox.now_utc()) }}, false) as is_too_old
    from (
        {{ delta_outbox.lives_of_keys() | indent(8) }}
    ) as k
    inner join outbox_checked_policies as p on k.event_type = p.event_type
{%- endmacro %}
