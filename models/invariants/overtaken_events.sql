-- Who waited from before the range was overtaken if the furthest claim until then is of a later event: no join, for a key
-- may have very many events.
with swept as (
    select
        *,
        max(if(claim is null, null, struct(claim, since as at))) over (
            partition by policy_version, ordering_key, scope
            order by until, claim is not null
            rows between unbounded preceding and current row
        ) as furthest
    from {{ ref("checked_order") }}
    where
        claim is not null
        or since is null
),

overtaken as (
    select
        ordering_key,
        wait,
        furthest.claim,
        furthest.at
    from swept
    where
        wait is not null
        and furthest.claim.position > wait.position
    union all
    select
        w.ordering_key,
        w.wait,
        c.claim,
        c.since as at
    from {{ ref("checked_order") }} as w
    inner join {{ ref("checked_order") }} as c
        on
            w.ordering_key = c.ordering_key
            and w.scope = c.scope
            and w.policy_version <=> c.policy_version
            and w.until > c.since
            and (w.since < c.since or (w.since = c.since and not w.since_exclusive))
    where
        w.wait is not null
        and w.since is not null
        and c.claim.position > w.wait.position
),

final as (
    select
        wait.event_id,
        wait.arrival,
        wait.destination,
        concat('a later event was claimed while this one was ', wait.state) as problem,
        ordering_key,
        claim.event_id as overtaken_by,
        claim.destination as overtaken_at_destination,
        claim.claim_id,
        claim.occurred_at,
        at.epoch,
        at.sequence
    from overtaken
)

select * from final
