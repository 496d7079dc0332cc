with claims as (
    select
        *,
        count(*) over (partition by claim_id) as deliveries
    from {{ ref("checked_transitions") }}
    where to_state = 'CLAIMED'
),

transitions as (
    select
        event_id,
        arrival,
        destination,
        case
            when claim_id is null then 'a claim without claim_id'
            when relay_id is null then 'a claim by nobody'
            when lease_expires_at is null then 'a claim without a lease'
            when attempt < 1 then 'a claim without a number'
            when claim_size is null or claim_size <> deliveries then 'a claim whose size is not its deliveries'
        end as problem,
        claim_id,
        relay_id as claimed_by,
        lease_expires_at,
        claim_size,
        occurred_at
    from claims
),

deliveries as (
    select
        event_id,
        arrival,
        destination,
        case
            when state = 'CLAIMED' and (claim_id is null or claimed_by is null or lease_expires_at is null)
                then 'claimed in the projection, without the fields of a claim'
            when state <> 'CLAIMED' and (claim_id is not null or claimed_by is not null or lease_expires_at is not null)
                then 'fields of a claim in the projection, without a claim'
        end as problem,
        claim_id,
        claimed_by,
        lease_expires_at,
        claim_size,
        changed_at as occurred_at
    from {{ ref("checked_deliveries") }}
),

final as (
    select * from transitions
    where problem is not null
    union all
    select * from deliveries
    where problem is not null
)

select * from final
