{% macro task_targets(kind, state, request, is_named, started, now) -%}
    {#-
        The open tasks that an operator's request about workflows is about, as of one version of the projection: one row each,
        with what the command says of it. The command line, Python and `dbt run-operation` evaluate this very text.

        Column refusal: null for a task that the request gets; else why a task is not to be had. An item expires when the claim
        of `todo` ends, so only an open one can expire later; of one that never expires, at the last instant of all.

        twin: python/delta_outbox/workflow_engine/execution/tasks.py::NEVER

        Arguments:
            kind: extend, assign, or cancel, which kills the task at which an instance stands
            state: relation, the projection at a version
            request: relation with the one row of `task_request_row`
            is_named: true if the request names its instances one by one
            started: SQL condition on t.started_at, when the instance was started; true if any will do
            now: SQL expression, the time of the question
    -#}
    {%- set iso = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'" -%}
    with selected as (
        {{ delta_outbox.selected_tasks(state, request, is_named, started) | indent(8) }}
    )

    select
        task_id as event_id,
        arrival,
        destination,
        lifecycle,
        workflow,
        instance,
        instance_key,
        task,
        third_party,
        state,
        started_at,
        expires_at,
        {%- if kind == "extend" %}
        expires_then,
        to_json(named_struct(
            'from', date_format(expires_at, "{{ iso }}"), 'until', date_format(expires_then, "{{ iso }}")
        )) as arguments,
        {%- elif kind == "assign" %}
        assigned_to,
        to_json(named_struct('to', assignee)) as arguments,
        {%- else %}
        to_json(named_struct('state', delivery_state)) as arguments,
        {%- endif %}
        case
            when is_ambiguous then 'is the key of instances of several workflows: name one of these'
            when not is_meant then 'does not match the filter'
            when kill_command_id is not null then concat('is cancelled already by command ', kill_command_id)
            {%- if kind == "extend" %}
            when expires_at is null then 'never expires'
            when category = 'to_do' and coalesce(held_by, '') <> 'todo' then 'is not open for an answer'
            when category = 'to_do' and expires_at <= {{ now }} then 'has expired'
            when expires_then <= expires_at
                then concat('expires not before that, at ', date_format(expires_at, "{{ iso }}"))
            when expires_then <= {{ now }} then 'would have expired by then'
            when expires_then >= timestamp '2261-12-31 00:00:00' then 'would expire after the year 2261'
            {%- elif kind == "assign" %}
            when coalesce(held_by, '') <> 'todo' then 'is not open for an answer'
            when expires_at <= {{ now }} then 'has expired'
            when coalesce(assigned_to, '') = assignee
                then if(assignee = '', 'is held by nobody already', concat('is held already by ', assignee))
            when only_unassigned and assigned_to is not null then concat('is held by ', assigned_to)
            {%- else %}
            when coalesce(default_exit, '') = '' then 'has no default exit, so nothing would follow'
            {%- endif %}
        end as refusal
    from selected
    {%- if kind == "assign" %}
    cross join (select assignee, only_unassigned from {{ request }})
    left join (
        select
            event_id as item_id,
            arrival as item_arrival,
            assigned_to
        from ({{ delta_outbox.item_holders() | indent(8) }})
    )
        on
            task_id = item_id
            and arrival = item_arrival
    {%- endif %}
{%- endmacro %}
