with tasks as (
    {{ delta_outbox.task_deliveries() | indent(4) }}
),

-- A claim and what has ended it are two transitions with one number of the attempt.
attempts as (
    select
        k.event_id,
        k.event_type,
        k.ordering_key,
        t.destination,
        t.lifecycle,
        t.attempt,
        min(t.occurred_at) filter (where t.to_state = 'CLAIMED') as began_at,
        max(t.occurred_at) filter (where t.from_state = 'CLAIMED') as ended_at,
        max(t.reason) filter (where t.from_state = 'CLAIMED') as result,
        max(t.outcome) filter (where t.from_state = 'CLAIMED') as outcome,
        max(t.error) filter (where t.from_state = 'CLAIMED') as error,
        max(t.available_at) filter (where t.from_state = 'CLAIMED') as next_at,
        max(t.relay_id) filter (where t.to_state = 'CLAIMED') as held_by,
        max(t.lease_expires_at) filter (where t.to_state = 'CLAIMED') as lease_expires_at,
        max(t.actor) filter (where t.from_state = 'CLAIMED') as actor,
        max(t.command_id) filter (where t.from_state = 'CLAIMED') as command_id
    from {{ source("outbox", "outbox_transitions") }} as t
    inner join tasks as k
        on
            t.event_id = k.event_id
            and t.arrival = k.arrival
            and t.destination = k.destination
    group by k.event_id, k.event_type, k.ordering_key, t.destination, t.lifecycle, t.attempt
),

final as (
    select
        event_id as task_id,
        {{ delta_outbox.workflow_of("event_type") }} as workflow,
        {{ delta_outbox.within_workflow("event_type") }} as task,
        {{ delta_outbox.within_workflow("ordering_key") }} as instance,
        nullif(destination, 'workflows') as third_party, -- that of who does not run its workflow
        attempt,
        began_at,
        ended_at,
        result,
        {{ delta_outbox.known_of_attempt("result", "destination") | indent(8) }} as known,
        outcome,
        error,
        next_at,
        held_by,
        lease_expires_at,
        actor,
        command_id,
        ordering_key as instance_key
    from attempts
)

select * from final
