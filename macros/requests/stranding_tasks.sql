{% macro stranding_tasks(tasks, answers) -%}
    {#-
        The tasks at which instances would be stranded, at once or later, if they went on by their late answers. Who goes on by one
        leaves the routes of its version. So it may come once more to a task under the same identifier, which is used once; or to
        one that the workflows in force do not have, or have in another category, so nobody has code for it.

        twin: python/delta_outbox/workflow_engine/migrations.py::tasks_again

        Arguments:
            tasks: name of a query with open tasks, one per instance, as `selected_tasks` selects them
            answers: name of a query with their late answers, as `late_answers_of` has them
        Columns: instance_key, and the names of the tasks: again, and gone; one of them at least.
    -#}
    with legs_of as (
        select
            number,
            workflow,
            collect_list(named_struct('task', task, 'outcome', outcome, 'to_task', to_task)) as legs
        from ({{ delta_outbox.kept_rows("railway_routes") | indent(8) }})
        where
            cause = 'decided'
            and to_task <> ''
        group by number, workflow
    ),

    names_of as (
        {{ delta_outbox.stranding_names() | indent(8) }}
    ),

    led as (
        select /*+ broadcast(g), broadcast(n) */
            t.instance_key,
            t.visits,
            g.legs,
            n.once,
            n.gone,
            transform(
                filter(g.legs, leg -> leg.task = l.late.task and leg.outcome = l.late.outcome), leg -> leg.to_task
            ) as ahead
        from {{ tasks }} as t
        inner join {{ answers }} as l on t.instance_key = l.instance_key
        inner join legs_of as g
            on
                t.plan = g.number
                and t.workflow = g.workflow
        inner join names_of as n
            on
                t.plan = n.number
                and t.workflow = n.workflow
    ),

    reached as (
        select
            instance_key,
            visits,
            once,
            gone,
            -- No way to a task that is new has more steps than there are legs.
            aggregate(
                legs,
                ahead,
                (found, step) -> array_union(
                    found, transform(filter(legs, leg -> array_contains(found, leg.task)), leg -> leg.to_task)
                )
            ) as found
        from led
    ),

    judged as (
        select
            instance_key,
            array_sort(array_intersect(array_intersect(found, once), map_keys(visits))) as again,
            array_sort(array_intersect(found, gone)) as gone
        from reached
    )

    select * from judged
    where size(again) + size(gone) > 0
{%- endmacro %}
