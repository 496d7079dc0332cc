{% macro broken_by_appends() -%}
    {#- The appends to the transition log whose number is missing, was used before, or was used by two commits; those that hold a delivery twice. Up to where a purge has removed transitions, numbers may be missing. -#}
    with appends as (
        select
            epoch,
            lane,
            sequence,
            min(_commit_version) as first_commit,
            max(_commit_version) as last_commit,
            -- All rows of an append are of one relay, but for claims of items, which `todo` holds; where all transitions are
            -- checked, no commit is known.
            greatest(count(distinct _commit_version), count(distinct nullif(relay_id, 'todo'))) as commits,
            count(*) as transitions,
            count(distinct event_id, arrival, destination) as distinct_deliveries,
            min(occurred_at) as occurred_at
        from outbox_checked_log
        group by epoch, lane, sequence
    ),

    followed as (
        select
            a.*,
            coalesce(lag(a.sequence) over in_lane, v.sequence, 0) as previous_sequence,
            coalesce(p.sequence, 0) as purged_sequence,
            lag(a.last_commit) over in_lane as previous_commit
        from appends as a
        left join outbox_checked_lanes as v
            on
                a.epoch = v.epoch
                and a.lane = v.lane
        left join outbox_purged_lanes as p
            on
                a.epoch = p.epoch
                and a.lane = p.lane
        window in_lane as (partition by a.epoch, a.lane order by a.sequence)
    ),

    final as (
        select
            *,
            case
                when sequence <= previous_sequence then 'a number that was used before'
                when commits > 1 then 'two appends of one number'
                when sequence > greatest(previous_sequence, purged_sequence) + 1 then 'numbers are missing before it'
                when first_commit < previous_commit then 'appended before its predecessor'
                when transitions > distinct_deliveries then 'a delivery twice in one append'
            end as problem
        from followed
    )

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
    from final
    where problem is not null
{%- endmacro %}
