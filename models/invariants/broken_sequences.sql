with verified as (
    select inline(lanes) from {{ ref("verification") }}
),

appends as (
    select
        epoch,
        lane,
        sequence,
        min(commit_version) as first_commit,
        max(commit_version) as last_commit,
        count(distinct commit_version) as commits,
        count(*) as transitions,
        count(distinct event_id, arrival, destination) as deliveries,
        min(occurred_at) as occurred_at
    from {{ ref("checked_transitions") }}
    group by epoch, lane, sequence
),

followed as (
    select
        appends.*,
        coalesce(
            lag(appends.sequence) over (partition by appends.epoch, appends.lane order by appends.sequence),
            verified.sequence,
            0
        ) as previous_sequence,
        lag(appends.last_commit) over (
            partition by appends.epoch, appends.lane
            order by appends.sequence
        ) as previous_commit
    from appends
    left join verified
        on
            appends.epoch = verified.epoch
            and appends.lane = verified.lane
),

judged as (
    select
        epoch,
        lane,
        sequence,
        case
            when sequence <= previous_sequence then 'a number that was used before'
            when commits > 1 then 'two appends of one number'
            when sequence > previous_sequence + 1 then 'numbers are missing before it'
            when first_commit < previous_commit then 'appended before its predecessor'
            when transitions > deliveries then 'a delivery twice in one append'
        end as problem,
        previous_sequence,
        first_commit,
        last_commit,
        transitions,
        deliveries,
        occurred_at
    from followed
),

final as (
    select * from judged
    where problem is not null
)

select * from final
