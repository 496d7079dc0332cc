{% macro task_refusal(kind, now) -%}
    {#-
        Why an open task is not to be had for a request, an expression: null for one that the request gets.

        An item expires when the claim of `todo` ends, so only an open one can expire later; of one that never expires, at the
        last instant of all. An instance goes on elsewhere only where nobody can have acted without a word: not while its task is
        attempted, or may have been.

        twin: python/delta_outbox/workflow_engine/execution/tasks.py::NEVER

        Arguments:
            kind, now: see task_targets, in which the names s, u, l and p stand for the task, its attempts, its late answers, and
                to which tasks they lead again, and a and h for the assignment and who holds an item
    -#}
    {%- set iso = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'" -%}
    case
        when s.is_ambiguous then 'is the key of instances of several workflows: name one of these'
        when not s.is_meant then 'does not match the filter'
        when s.kill_command_id is not null
            then concat(
                if(s.is_moved, 'is moved already by command ', 'is cancelled already by command '),
                s.kill_command_id
            )
        {%- if kind == "extend" %}
        when s.expires_at is null then 'never expires'
        when s.category = 'to_do' and coalesce(s.held_by, '') <> 'todo' then 'is not open for an answer'
        when s.category = 'to_do' and s.expires_at <= {{ now }} then 'has expired'
        when s.expires_then <= s.expires_at
            then concat('expires not before that, at ', date_format(s.expires_at, "{{ iso }}"))
        when s.expires_then <= {{ now }} then 'would have expired by then'
        when s.expires_then >= timestamp '2261-12-31 00:00:00' then 'would expire after the year 2261'
        {%- elif kind == "assign" %}
        when coalesce(s.held_by, '') <> 'todo' then 'is not open for an answer'
        when s.expires_at <= {{ now }} then 'has expired'
        when coalesce(h.assigned_to, '') = a.assignee
            then if(a.assignee = '', 'is held by nobody already', concat('is held already by ', a.assignee))
        when a.only_unassigned and h.assigned_to is not null then concat('is held by ', h.assigned_to)
        {%- elif kind == "cancel" %}
        when coalesce(s.default_exit, '') = '' then 'has no default exit, so nothing would follow'
        {%- else %}
        {%- if kind == "accept_late" %}
        when l.tasks is null then 'has no late answer that may count'
        when l.tasks = 0 then 'goes on by its late answer already'
        when l.tasks > 1 then 'has late answers to several tasks: name one of these'
        when l.target is null
            then concat('its version knows no outcome ', l.late.outcome, ' of ', l.late.task, ', or no exit for it')
        when size(p.gone) > 0
            then concat(
                'leads on to ', array_join(p.gone, ', '), ', which the workflows in force do not have, or have in another category: ',
                'build rows that have it, migrate it to a version that has no such task, or answer or cancel its task'
            )
        when size(p.again) > 0
            then concat(
                'may come again to ', array_join(p.again, ', '), ', whose identifier has no {visit}, and would be stranded there: ',
                'migrate it to a version whose identifier has one, or answer or cancel its task'
            )
        {%- endif %}
        when s.delivery_state = 'CLAIMED' and s.held_by <> 'todo' then 'is attempted right now: ask again when that has ended'
        when u.event_id is not null then 'may have acted, and nobody knows yet: ask again when its task has ended'
        {%- endif %}
    end
{%- endmacro %}
