{% macro targets_select() -%}
    {#-
        Where each outcome of a task leads, by the numbered writes of `workflows`: to a task, or to the event that ends its
        instance. The default exit is one of them.

        twin: python/delta_outbox/railway/routing.py::after

        Columns: number, workflow, task, outcome, target.
    -#}
    select
        number,
        workflow,
        task,
        outcome,
        coalesce(nullif(to_task, ''), nullif(to_event, '')) as target
    from ({{ delta_outbox.kept_rows("railway_routes") | indent(4) }})
    where cause = 'decided'
    union all
    select
        t.number,
        t.workflow,
        t.task,
        'default exit' as outcome,
        nullif(w.default_exit, '') as target
    from ({{ delta_outbox.kept_rows("railway_tasks") | indent(4) }}) as t
    inner join ({{ delta_outbox.kept_rows("railway_workflows") | indent(4) }}) as w
        on
            t.number = w.number
            and t.workflow = w.workflow
{%- endmacro %}
