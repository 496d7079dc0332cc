{% macro waits_and_results() -%}
    {#-
        When each delivery began to be open (since; null: before the range), and when it was published (at) by which claim (since):
        a part of `broken_by_order`.

        Columns: policy_version, ordering_key, scope, position, event_id, arrival, destination, state, holds, steps; is_wait, since,
            at.
    -#}
    select
        policy_version,
        ordering_key,
        scope,
        position,
        event_id,
        arrival,
        destination,
        state,
        holds,
        steps,
        inline(
            concat(
                if(
                    not is_too_old
                    and (
                        coalesce(get(steps, 0).from_state, state) in ('PENDING', 'CLAIMED')
                        or (size(steps) = 0 and state = 'DEAD' and holds)
                    ),
                    -- What was replayed before the range may be open for a shorter time than an older claim.
                    array(
                        struct(
                            true as is_wait,
                            if(replayed_at is null, null, struct(-1 as epoch, cast(0 as bigint) as sequence)) as since,
                            cast(null as struct<epoch:int,sequence:bigint>) as at
                        )
                    ),
                    array()
                ),
                transform(
                    filter(
                        steps,
                        one -> not is_too_old and one.stays_open and one.from_state in ('PUBLISHED', 'DEAD')
                    ),
                    one -> struct(true as is_wait, one.at as since, cast(null as struct<epoch:int,sequence:bigint>) as at)
                ),
                filter(
                    transform(
                        steps,
                        (one, place) -> if(
                            one.to_state = 'PUBLISHED' and one.policy_version = policy_version,
                            struct(false as is_wait, if(place > 0, steps[place - 1].at, null) as since, one.at as at),
                            null
                        )
                    ),
                    one -> one is not null
                )
            )
        )
    from (
        {{ delta_outbox.lives_in_scopes() | indent(8) }}
    )
{%- endmacro %}
