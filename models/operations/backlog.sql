with open_deliveries as (
    select
        event_type,
        destination,
        state,
        appended_at,
        available_at,
        kill_command_id
    from {{ ref("outbox_state") }}
    where state in ('PENDING', 'CLAIMED')
),

event_types as ( -- noqa: ST03
    select distinct event_type from open_deliveries
    where destination = ''
),

policies as (
    {{ delta_outbox.policy_of_event_type("event_types", ref("policy_rows")) | indent(4) }}
),

-- What was never claimed goes to every destination that its policy names.
with_destination as (
    select /*+ broadcast(p) */
        d.* except (destination),
        explode(
            case when d.destination = '' then split(p.policy.destination, '[|]') else array(d.destination) end
        ) as destination
    from open_deliveries as d
    left join policies as p on d.event_type = p.event_type
),

final as (
    select
        event_type,
        destination,
        count(*) as count,
        count_if(state = 'PENDING') as pending,
        count_if(state = 'CLAIMED') as claimed,
        greatest(
            timestampdiff(second, min(appended_at), {{ delta_outbox.now_utc() }}), cast(0 as bigint)
        ) as oldest_age_seconds,
        min(coalesce(available_at, appended_at)) filter (where state = 'PENDING') as next_due
    from with_destination
    group by event_type, destination
)

select * from final
