{% macro late_answers_of(tasks, state, request) -%}
    {#-
        The late answers by which instances may go on: of each task that was asked in an instance, the first answer to its last
        visit that has ended as expired or uncertain without it, unless a later visit was decided.

        Arguments:
            tasks: name of a query with open tasks, one per instance, as `selected_tasks` selects them
            state: relation, the projection at a version
            request: relation with the one row of `task_request_row`
        Columns: instance_key; tasks, how many have an answer that their instance does not go on by yet (0: it goes on by all of
            them); and of one of these: late, a struct of task_id, task, outcome and data, and target, where that leads.
    -#}
    with last_visits as (
        {{ delta_outbox.last_late_answers(state) | indent(8) }}
    ),

    routes as (
        {{ delta_outbox.targets_select() | indent(8) }}
    ),

    judged as (
        select /*+ broadcast(r) */
            t.instance_key,
            v.task_id,
            v.task,
            get_json_object(v.arguments, '$.outcome') as outcome,
            coalesce(get_json_object(v.arguments, '$.data'), '{}') as data,
            t.plan,
            t.workflow,
            array_contains(coalesce(t.accepted, array()), v.task_id) as is_accepted
        from {{ tasks }} as t
        inner join last_visits as v on t.instance_key = v.instance_key
        cross join {{ request }} as r
        where v.task = coalesce(r.late_task, v.task)
    ),

    led as (
        select /*+ broadcast(n) */
            j.*,
            n.target
        from judged as j
        left join routes as n
            on
                j.plan = n.number
                and j.workflow = n.workflow
                and j.task = n.task
                and j.outcome = n.outcome
    )

    select
        instance_key,
        count_if(not is_accepted) as tasks,
        max_by(named_struct('task_id', task_id, 'task', task, 'outcome', outcome, 'data', data), task) filter (where not is_accepted)
            as late,
        max_by(target, task) filter (where not is_accepted) as target
    from led
    group by instance_key
{%- endmacro %}
