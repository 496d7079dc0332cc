-- A day is a partition of the log of transitions: who asks for some days reads those only.
with third_parties as (
    select distinct third_party
    from (
        {{ delta_outbox.kept_rows("railway_tasks") | indent(8) }}
    )
    where third_party <> ''
),

final as (
    select /*+ broadcast(p) */
        t.destination as third_party,
        t.occurred_date as day,
        count(*) as attempts,
        count_if(t.reason = 'completed') as completed,
        count_if(t.reason in ('failed', 'exhausted')) as failed,
        count_if(t.reason = 'rejected') as refused,
        count_if(t.reason in ('unknown', 'crashed', 'lease_expired', 'uncertain')) as unsure,
        count_if(t.reason = 'uncertain') as ended_uncertain,
        max(t.occurred_at) filter (
            where t.reason in ('failed', 'exhausted', 'rejected', 'unknown', 'crashed', 'lease_expired', 'uncertain')
        ) as last_fault_at,
        max_by(t.error, t.occurred_at) filter (where t.error is not null) as last_error
    from {{ source("outbox", "outbox_transitions") }} as t
    left semi join third_parties as p on t.destination = p.third_party
    where
        t.from_state = 'CLAIMED'
        and t.to_state <> 'DEAD' -- killed, or a row that only looked like a task
        and t.reason not in ('released', 'expired')
    group by t.destination, t.occurred_date
)

select * from final
