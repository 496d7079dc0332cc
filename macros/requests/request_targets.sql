{% macro request_targets(kind, state, request, from_states, is_named, created, now) -%}
    {#-
        The deliveries that an operator's request is about, as of one version of the projection: one row each, with what
        the command says of it. The command line, Python and `dbt run-operation` evaluate this very text.

        Column refusal: null for a delivery that the request gets; else why a delivery of an event that it names is not to
        be had. Column arguments: where the delivery stood. A replay is void once the delivery is in another lifecycle, a
        release once its claim has ended.

        Arguments:
            kind: replay, kill or release
            state: relation, the projection at a version
            request: relation with the one row of `request_row`
            from_states: list of literals, the states (partitions of the projection) to look into
            is_named: true if the request names its events one by one
            created: SQL condition on created_at; true if any will do
            now: SQL expression, the time of the question
    -#}
    {%- set matches -%}
        ({{ created }})
        and (r.event_type_regex is null or s.event_type rlike r.event_type_regex)
        and (r.error is null or coalesce(contains(s.last_error, r.error), false))
    {%- endset -%}
    with considered as (
        select /*+ broadcast(r) */
            s.event_id,
            s.arrival,
            s.destination,
            s.lifecycle,
            s.state,
            s.event_type,
            s.ordering_key,
            s.created_at,
            s.ordinal,
            s.last_error,
            {%- if kind == "replay" %}
            to_json(named_struct('from_state', s.state, 'epoch', s.epoch, 'sequence', s.sequence)) as arguments,
            case
                when {{ delta_outbox.is_reserved("s.event_type") }}
                    then 'is a task: a task is never replayed, a new visit does it again'
                when s.state <> r.state then concat('is ', s.state, ', not ', r.state)
                when not ({{ matches }}) then 'does not match the filter'
            end as refusal
            {%- elif kind == "kill" %}
            to_json(named_struct('state', s.state)) as arguments,
            case
                when s.state = 'PUBLISHED' then 'is PUBLISHED'
                when s.state = 'DEAD' and s.reason = 'operator' then 'is DEAD by an operator'
                when s.kill_command_id is not null then concat('is killed already by command ', s.kill_command_id)
                when w.workflow is not null
                    then concat('is a task of ', w.workflow, ', which has no default exit, so nothing would follow')
            end as refusal
            {%- else %}
            to_json(named_struct('claim_id', s.claim_id)) as arguments,
            case
                when s.state <> 'CLAIMED' then concat('is ', s.state, ', not CLAIMED')
                when s.claimed_by = 'todo' then 'is claimed by todo'
                when r.claim_ids is not null and not array_contains(r.claim_ids, s.claim_id) then 'is under another claim'
                when not {{ delta_outbox.lease_is_over(now, "s") }}
                    then concat('is leased until ', date_format(s.lease_expires_at, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"))
            end as refusal
            {%- endif %}
        from {{ state }} as s
        cross join {{ request }} as r
        {%- if kind == "kill" %}
        left join ({{ delta_outbox.tasks_without_exit(state, request) | indent(8) }}) as w
            on
                s.event_id = w.event_id
                and s.arrival = w.arrival
        {%- endif %}
        where
            s.state in ({{ from_states }})
            {%- if kind == "replay" %}
            and ({{ is_named }} or ({{ matches }}))
            {%- endif %}
            and (not {{ is_named }} or s.event_id in (select explode(event_ids) from {{ request }}))
    )

    select *
    from considered
    where {{ is_named }} or refusal is null
{%- endmacro %}
