{% macro tasks_between(deliveries, state) -%}
    {#-
        The tasks of instances that stand between two tasks: the last one has ended, and nothing follows yet. For a moment, for as
        long as nothing runs, or for good. Only what has ended in the last days is looked at.

        Arguments:
            deliveries: name of a query with all rows of `task_deliveries`
            state: relation, the projection
        Columns: those of the projection; all tasks of each instance that have ended in these days.
    -#}
    select d.* from {{ deliveries }} as d
    left anti join (select ordering_key from {{ deliveries }} where state in ('PENDING', 'CLAIMED')) as o
        on d.ordering_key = o.ordering_key
    left anti join (
        select event_id from {{ state }}
        where
            {{ delta_outbox.is_reserved("event_id") }}
            and created_at >= {{ delta_outbox.recent_days() }}
    ) as e
        on d.ordering_key = e.event_id
    where
        d.state in ('PUBLISHED', 'DEAD')
        and d.changed_at >= {{ delta_outbox.recent_days() }}
{%- endmacro %}
