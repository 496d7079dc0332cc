{% macro selected_tasks(state, request, is_named, started) -%}
    {#-
        The open tasks that an operator's request about workflows selects, as of one version of the projection, and those of the
        instances that it names.

        Arguments: as of `task_targets`.
        Columns: those of `workflow_tasks`; visits, how often the instance has come to each task; those of a delivery that a command
        needs; kill_command_id, of the command that is to end it, and is_moved, whether that lets its instance go on elsewhere; state,
        of the instance; default_exit, of its workflow; expires_then, by an extension; is_meant, false if its instance is named and
        the task does not match the rest, or nobody can say so; is_ambiguous, if the name stands for instances of several workflows.
    -#}
    {%- set matches -%}
        coalesce(
            ({{ started }})
            and t.task = coalesce(r.task, t.task)
            and (r.third_party is null or r.third_party in (t.third_party, t.destination, n.asked_as))
            and (r.task_ids is null or array_contains(r.task_ids, t.task_id))
            and (r.role is null or array_contains(split(t.roles, '[|]'), r.role))
            and (not r.only_items or t.category = 'to_do'),
            false
        )
    {%- endset -%}
    with open_deliveries as (
        select * from ({{ delta_outbox.task_deliveries(state) | indent(8) }})
        where state in ('PENDING', 'CLAIMED')
    ),

    tasks as (
        {{ delta_outbox.tasks_of("open_deliveries", visits=true) | indent(8) }}
    ),

    moves as (
        {{ delta_outbox.moved_tasks() | indent(8) }}
    ),

    exits as (
        {{ delta_outbox.kept_rows("railway_workflows") | indent(8) }}
    ),

    -- The third party of a task may have another name by now.
    names as (
        select
            workflow as of_workflow,
            task as of_task,
            third_party as asked_as
        from ({{ delta_outbox.rows_in_force("railway_tasks") | indent(8) }})
    )

    select /*+ broadcast(r), broadcast(x), broadcast(n) */
        t.*,
        d.lifecycle,
        d.kill_command_id,
        m.command_id is not null as is_moved,
        {{ delta_outbox.state_of_instance() | indent(8) }} as state,
        x.default_exit,
        coalesce(r.extend_to, timestampadd(second, r.extend_by_seconds, t.expires_at)) as expires_then,
        {{ matches }} as is_meant,
        {{ is_named }}
        and not array_contains(r.instances, t.instance_key)
        and size(collect_set(t.workflow) over (partition by t.instance)) > 1 as is_ambiguous
    from tasks as t
    inner join (select event_id, arrival, destination, lifecycle, kill_command_id from open_deliveries) as d
        on
            t.task_id = d.event_id
            and t.arrival = d.arrival
            and t.destination = d.destination
    cross join {{ request }} as r
    left join moves as m
        on
            d.kill_command_id = m.command_id
            and t.task_id = m.event_id
            and t.arrival = m.arrival
    left join exits as x
        on
            t.plan = x.number
            and t.workflow = x.workflow
    left join names as n
        on
            t.workflow = n.of_workflow
            and t.task = n.of_task
    where
        t.workflow = coalesce(r.workflow, t.workflow)
        and if(
            {{ is_named }},
            array_contains(r.instances, t.instance) or array_contains(r.instances, t.instance_key),
            {{ matches }}
        )
{%- endmacro %}
