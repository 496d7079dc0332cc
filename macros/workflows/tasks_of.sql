{% macro tasks_of(deliveries, hint="broadcast(k)", events=none, visits=false) -%}
    {#-
        The tasks of deliveries: what stands in the event of each, what the version of its instance says of it, and where its
        delivery stands. Events are read from the days of the deliveries only.

        Arguments:
            deliveries: name of a query with rows of the projection, those of tasks
            events: relation, the event log, or a version of it
            hint: how to join d, the deliveries, e, their events, and k, the rows of workflows
            visits: whether there is one more column, visits: how often the instance has come to each task
        Columns: those of the model `workflow_tasks`.
    -#}
    with bodies as (
        {{ delta_outbox.task_bodies(events or source("outbox", "outbox_events")) | indent(8) }}
    ),

    kept_tasks as (
        {{ delta_outbox.kept_rows("railway_tasks") | indent(8) }}
    ),

    asked as (
        {{ delta_outbox.asked_of_tasks() | indent(8) }}
    )

    select /*+ {{ hint }} */
        d.event_id as task_id,
        {{ delta_outbox.workflow_of("d.ordering_key") }} as workflow,
        e.body.task,
        k.title,
        k.category,
        {{ delta_outbox.within_workflow("d.ordering_key") }} as instance,
        d.ordering_key as instance_key,
        e.body.visits[e.body.task] as visit,
        aggregate(map_values(e.body.visits), 0, (total, one) -> total + one) as number,
        e.body.version,
        e.body.plan,
        nullif(k.third_party, '') as third_party,
        k.roles,
        k.compromise,
        k.never_expires_why,
        d.created_at as triggered_at,
        e.body.due_at,
        -- Who extends an item claims it anew, so its claim knows better.
        case
            when e.body.expires_at is null then cast(null as timestamp)
            when d.claimed_by = 'todo' then d.lease_expires_at
            else greatest(e.body.expires_at, x.extended_to)
        end as expires_at,
        e.body.start.event_id as start_event_id,
        e.body.start.started_at,
        e.body.before.task as last_task,
        e.body.before.task_id as last_task_id,
        e.body.before.cause as last_cause,
        e.body.before.outcome as last_outcome,
        e.body.accepted,
        {{ "e.body.visits," if visits }}
        d.state as delivery_state,
        if(d.state in ('PUBLISHED', 'DEAD'), {{ delta_outbox.cause_of_ending("d.reason") | indent(8) }}, null) as cause,
        case
            when d.state = 'DEAD' and d.outcome is null
                then if({{ delta_outbox.is_move("x.kill_arguments") }}, 'moved', 'default exit')
            else d.outcome
        end as outcome,
        d.attempts,
        d.last_error,
        d.claimed_by as held_by,
        d.claimed_at as held_since,
        d.lease_expires_at,
        d.available_at,
        d.changed_at,
        d.destination,
        d.arrival
    from {{ deliveries }} as d
    inner join bodies as e
        on
            d.event_id = e.event_id
            and d.arrival = e.arrival
            and cast(d.created_at as date) = e.created_date
    left join kept_tasks as k
        on
            e.body.plan = k.number
            and {{ delta_outbox.workflow_of("d.ordering_key") }} = k.workflow
            and e.body.task = k.task
    left join asked as x
        on
            d.event_id = x.event_id
            and d.arrival = x.arrival
    where e.body.task is not null
{%- endmacro %}
