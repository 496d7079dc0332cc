{% macro task_targets(kind, state, request, is_named, started, now) -%}
    {#-
        The open tasks that an operator's request about workflows is about, as of one version of the projection: one row each,
        with what the command says of it. The command line, Python and `dbt run-operation` evaluate this very text.

        Column refusal: null for a task that the request gets; else why a task is not to be had.

        Arguments:
            kind: extend or assign; or what kills the task at which an instance stands: cancel, accept_late, or migrate, of which Python
                says where the instance goes on
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
    {%- if kind in ["accept_late", "migrate"] %},

    unsure as (
        {{ delta_outbox.unsure_tasks(source("outbox", "outbox_transitions"), "selected") | indent(8) }}
    )
    {%- endif %}
    {%- if kind == "accept_late" %},

    late_answers as (
        {{ delta_outbox.late_answers_of("selected", state, request) | indent(8) }}
    ),

    stranding as (
        {{ delta_outbox.stranding_tasks("selected", "late_answers") | indent(8) }}
    )
    {%- endif %}

    select
        s.task_id as event_id,
        s.arrival,
        s.destination,
        s.lifecycle,
        s.workflow,
        s.instance,
        s.instance_key,
        s.task,
        s.third_party,
        s.state,
        s.started_at,
        s.expires_at,
        {%- if kind == "extend" %}
        s.expires_then,
        to_json(named_struct(
            'from', date_format(s.expires_at, "{{ iso }}"), 'until', date_format(s.expires_then, "{{ iso }}")
        )) as arguments,
        {%- elif kind == "assign" %}
        h.assigned_to,
        to_json(named_struct('to', a.assignee)) as arguments,
        {%- elif kind == "accept_late" %}
        l.late.task_id as late_task_id,
        l.late.outcome as late_outcome,
        l.target as goes_to,
        to_json(named_struct('state', s.delivery_state, 'late', l.late)) as arguments,
        {%- else %}
        {%- if kind == "migrate" %}
        s.version,
        {%- endif %}
        to_json(named_struct('state', s.delivery_state)) as arguments,
        {%- endif %}
        {{ delta_outbox.task_refusal(kind, now) | indent(8) }} as refusal
    from selected as s
    {%- if kind == "assign" %}
    cross join (select assignee, only_unassigned from {{ request }}) as a
    left join ({{ delta_outbox.item_holders(state) | indent(4) }}) as h
        on
            s.task_id = h.event_id
            and s.arrival = h.arrival
    {%- endif %}
    {%- if kind in ["accept_late", "migrate"] %}
    left join unsure as u
        on
            s.task_id = u.event_id
            and s.arrival = u.arrival
    {%- endif %}
    {%- if kind == "accept_late" %}
    left join late_answers as l on s.instance_key = l.instance_key
    left join stranding as p on s.instance_key = p.instance_key
    {%- endif %}
{%- endmacro %}
