{% macro tasks_again(tasks, answers) -%}
    {#-
        The tasks to which instances would come, or might come later, once more under the same identifier, if they went on by their
        late answers: an identifier is used once, so they would be stranded there. No loop of a version has such a task, but who
        goes on by a late answer leaves its routes.

        twin: python/delta_outbox/workflow_engine/migrations.py::tasks_again

        Arguments:
            tasks: name of a query with open tasks, one per instance, as `selected_tasks` selects them
            answers: name of a query with their late answers, as `late_answers_of` has them
        Columns: instance_key, and again, the names of the tasks, at least one.
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

    named_once as (
        select
            number,
            workflow,
            collect_list(task) as names
        from ({{ delta_outbox.kept_rows("railway_tasks") | indent(8) }})
        -- A brace that is meant is doubled.
        where not contains(regexp_replace(identifier, '[{]{2}|[}]{2}', ''), '{visit}')
        group by number, workflow
    ),

    led as (
        select /*+ broadcast(g), broadcast(n) */
            t.instance_key,
            t.visits,
            g.legs,
            n.names,
            transform(
                filter(g.legs, leg -> leg.task = l.late.task and leg.outcome = l.late.outcome), leg -> leg.to_task
            ) as ahead
        from {{ tasks }} as t
        inner join {{ answers }} as l on t.instance_key = l.instance_key
        inner join legs_of as g
            on
                t.plan = g.number
                and t.workflow = g.workflow
        inner join named_once as n
            on
                t.plan = n.number
                and t.workflow = n.workflow
    ),

    reached as (
        select
            instance_key,
            visits,
            names,
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
            array_sort(array_intersect(array_intersect(found, names), map_keys(visits))) as again
        from reached
    )

    select * from judged
    where size(again) > 0
{%- endmacro %}
