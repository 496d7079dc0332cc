{%- set days = var("identity_horizon_days", 7) | int -%}
{%- set events = source("outbox", "outbox_events") -%}
{%- if var("audit", "") == "full" -%}
    {%- set within_horizon = "created_date is not null" -%}
{%- else -%}
    {%- set within_horizon = "created_date in (select d.day from days_of_recent as d)" -%}
{%- endif -%}
with recently_appended as (
    select distinct created_date
    from {{ events }}
    where
        appended_at >= {{ delta_outbox.now_utc() }} - interval {{ days }} days
        or (appended_at is null and created_at >= {{ delta_outbox.now_utc() }} - interval {{ days }} days)
),

days_of_recent as (
    select explode(sequence(date_sub(created_date, {{ days }}), created_date)) as day
    from recently_appended
),

repeated as (
    select
        e.event_id,
        collect_set(e.created_date) as dates
    from {{ events }} as e
    where e.{{ within_horizon }}
    group by e.event_id
    having count(*) > 1
),

-- Content is read from the partitions of copies only.
places as (
    select
        event_id,
        explode(dates) as created_date
    from repeated
),

copies as (
    select
        c.event_id,
        c.event_type,
        c.ordering_key,
        c.created_at,
        c.appended_at,
        c._metadata.row_commit_version as arrival,
        row_number() over (first_copy_first) as copy,
        first_value(c._metadata.row_commit_version) over (first_copy_first) as first_arrival,
        {{ delta_outbox.content_of_event("c") }} <=> first_value({{ delta_outbox.content_of_event("c") }}) over (
            first_copy_first
        ) as same_content
    from {{ events }} as c
    left semi join places as p
        on
            c.event_id = p.event_id
            and c.created_date = p.created_date
    where c.{{ within_horizon }}
    window first_copy_first as (
        partition by c.event_id
        order by c._metadata.row_commit_version, {{ delta_outbox.order_of_contents("c") }}
    )
),

later_copies as (
    select * from copies
    where copy > 1
),

-- Of several deliveries the one that is furthest from its end.
states as (
    select
        s.event_id,
        s.arrival,
        min_by(
            struct(s.state, s.attempts, s.last_error),
            case s.state when 'PENDING' then 1 when 'CLAIMED' then 2 when 'DEAD' then 3 else 4 end
        ) as first_copy
    from {{ ref("outbox_state") }} as s
    left semi join later_copies as l
        on
            s.event_id = l.event_id
            and s.arrival = l.first_arrival
    group by s.event_id, s.arrival
),

final as (
    select
        l.event_id,
        l.event_type,
        l.ordering_key,
        coalesce(s.first_copy.state, 'PENDING') as state,
        coalesce(s.first_copy.attempts, 0) as attempts,
        s.first_copy.last_error,
        coalesce(l.appended_at, l.created_at) as appended_at,
        l.same_content,
        l.copy,
        l.arrival,
        l.first_arrival,
        l.created_at
    from later_copies as l
    left join states as s
        on
            l.event_id = s.event_id
            and l.first_arrival = s.arrival
)

select * from final
