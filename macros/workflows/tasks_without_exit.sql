{% macro tasks_without_exit(state, request) -%}
    {#-
        The tasks that a request names and whose version has no default exit, so that nothing would follow if they were killed. What
        no version has is none of them.

        Arguments:
            state: relation, the projection at a version
            request: relation with the one row of `request_row`
        Columns: event_id, arrival, workflow.
    -#}
    select /*+ broadcast(w) */ distinct
        d.event_id,
        d.arrival,
        w.workflow
    from {{ state }} as d
    inner join ({{ delta_outbox.task_bodies(source("outbox", "outbox_events")) | indent(4) }}) as e
        on
            d.event_id = e.event_id
            and d.arrival = e.arrival
            and cast(d.created_at as date) = e.created_date
    inner join ({{ delta_outbox.kept_rows("railway_workflows") | indent(4) }}) as w
        on
            e.body.plan = w.number
            and {{ delta_outbox.workflow_of("d.ordering_key") }} = w.workflow
    where
        {{ delta_outbox.is_reserved("d.event_type") }}
        and d.event_id in (select explode(event_ids) from {{ request }})
        and coalesce(w.default_exit, '') = ''
{%- endmacro %}
