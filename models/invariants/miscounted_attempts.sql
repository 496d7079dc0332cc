with judged as (
    select
        *,
        case
            when reason = 'replayed' and lifecycle <> previous_lifecycle + 1
                then 'a replay that is not the next lifecycle'
            when reason = 'replayed' and (attempt <> 0 or publish_attempts <> 0 or crashes <> 0)
                then 'a replay that does not count from 0'
            when reason = 'replayed' then null
            when lifecycle <> previous_lifecycle then 'another lifecycle without a replay'
            when to_state = 'CLAIMED' and attempt <> previous_attempt + 1 then 'a claim that is not one attempt more'
            when to_state <> 'CLAIMED' and attempt <> previous_attempt then 'another attempt than the claim'
            when publish_attempts < previous_publish_attempts or crashes < previous_crashes
                then 'a counter that went down'
        end as problem
    from {{ ref("checked_transitions") }}
),

final as (
    select
        event_id,
        arrival,
        destination,
        problem,
        previous_lifecycle,
        previous_attempt,
        lifecycle,
        attempt,
        publish_attempts,
        crashes,
        reason,
        occurred_at,
        epoch,
        lane,
        sequence
    from judged
    where problem is not null
)

select * from final
