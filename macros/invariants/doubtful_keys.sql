{% macro doubtful_keys() -%}
    {#-
        The ordering keys of which something may have been overtaken: something was published while an earlier delivery was open,
        whatever the policies say, or something was replayed. Only of these keys `broken_by_order` asks what was open when.

        Columns: key_hash. Keys are sorted by hashes: they often begin alike, and are slow to compare then.
    -#}
    with deliveries as (
        select
            xxhash64(ordering_key) as key_hash,
            position,
            state = 'PUBLISHED' as is_published,
            lifecycle > 0 or replayed_at is not null as is_replayed,
            struct(epoch, sequence) as at,
            -- A policy may let what is dead hold its key.
            if(
                state = 'PUBLISHED',
                struct(epoch, sequence),
                struct(2147483647 as epoch, 9223372036854775807 as sequence)
            ) as until
        from outbox_touched_deliveries
        where
            ordering_key is not null
            and kill_command_id is null
    ),

    in_order as (
        select
            key_hash,
            is_replayed
            or (
                is_published
                and max(until) over (
                    partition by key_hash order by position rows between unbounded preceding and 1 preceding
                ) > at
            ) as is_doubtful
        from deliveries
    )

    select distinct key_hash
    from in_order
    where is_doubtful
{%- endmacro %}
