with commands as (
    select distinct
        command_id,
        kind,
        event_id,
        arrival
    from {{ source("outbox", "outbox_commands") }}
    where
        kind in ('replay', 'kill')
        and length(trim(actor)) > 0
        and length(trim(reason)) > 0
),

interventions as (
    select *
    from {{ ref("checked_transitions") }}
    where
        previous_state in ('PUBLISHED', 'DEAD')
        or from_state in ('PUBLISHED', 'DEAD')
        or reason in ('replayed', 'operator')
),

judged as (
    select
        i.*,
        case
            when i.reason not in ('replayed', 'operator') then 'a terminal state left without a replay'
            when coalesce(length(trim(i.actor)), 0) = 0 then 'nobody asked for it'
            when c.command_id is null then 'no command with a reason asked for it'
        end as problem
    from interventions as i
    left join commands as c
        on
            i.command_id = c.command_id
            and i.event_id = c.event_id
            and i.arrival = c.arrival
            and c.kind = if(i.reason = 'replayed', 'replay', 'kill')
),

final as (
    select
        event_id,
        arrival,
        destination,
        problem,
        previous_state,
        from_state,
        to_state,
        reason,
        actor,
        command_id,
        occurred_at,
        epoch,
        lane,
        sequence
    from judged
    where problem is not null
)

select * from final
