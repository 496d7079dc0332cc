-- The last numbered write of `destinations` holds all that is known of them.
with last_plan as (
    select plan
    from {{ source("outbox", "outbox_progress") }}
    where writer = 'destinations'
    order by number desc
    limit 1
),

stated as (
    select
        explode(
            from_json(
                get_json_object(plan, '$.destinations'),
                'map<string, struct<
                    pause: struct<at: bigint, actor: string, reason: string, command_id: string>,
                    breaker: struct<since: bigint, probe_at: bigint, error: string>
                >>'
            )
        ) as (destination, known)
    from last_plan
),

named as (
    select explode(split(destination, '[|]')) as destination
    from {{ ref("policy_rows") }}
    union
    select destination
    from stated
),

final as (
    select
        named.destination,
        stated.known.pause is not null as paused,
        timestamp_micros(stated.known.pause.at) as paused_at,
        stated.known.pause.actor as paused_by,
        stated.known.pause.reason as pause_reason,
        case
            when stated.known.breaker is null then 'closed'
            when timestamp_micros(stated.known.breaker.probe_at) > {{ delta_outbox.now_utc() }} then 'open'
            else 'half_open'
        end as breaker,
        timestamp_micros(stated.known.breaker.since) as opened_at,
        timestamp_micros(stated.known.breaker.probe_at) as next_probe_at,
        stated.known.breaker.error as breaker_error
    from named
    left join stated on named.destination = stated.destination
)

select * from final
