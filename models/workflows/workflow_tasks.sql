with deliveries as ( -- noqa: ST03
    {{ delta_outbox.task_deliveries() | indent(4) }}
),

final as (
    {{ delta_outbox.tasks_of("deliveries") | indent(4) }}
)

select * from final
