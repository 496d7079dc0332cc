{% macro checked_policies_select(progress, range) -%}
    {#-
        The policy of each event type under each version that a transition of the range names: its rows as they were kept
        (numbered writes of `policy`).

        Arguments:
            progress: relation, the log of plans
            range: the mapping of `invariant_range`
        Columns: policy_version, event_type, policy (a struct of destination, order_scope, on_dead, expires_after_seconds).
            What is not ordered is left out, as tasks are.
    -#}
    {%- set rows = [] -%}
    {%- if range["versions"] -%}
        {%- set plans -%}
            select
                get_json_object(plan, '$.version') as version,
                max(get_json_object(plan, '$.rows')) as policies
            from {{ progress }}
            where
                writer = 'policy'
                and array_contains(
                    from_json({{ delta_outbox.text_literal(tojson(range["versions"])) }}, 'array<string>'),
                    get_json_object(plan, '$.version')
                )
            group by get_json_object(plan, '$.version')
        {%- endset -%}
        {%- for plan in run_query(plans) -%}
            {%- for policy in fromjson(plan["policies"]) -%}
                {%- set parts = [] -%}
                {%- do delta_outbox.read_glob(policy["event_type"], parts, []) -%}
                {%- do rows.append(dict(policy, policy_version=plan["version"], position=loop.index, regex=parts | join)) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
    with kept as (
        {{ delta_outbox.rows_of_json(
            rows,
            "policy_version:string,position:int,regex:string,destination:string,ordering:string,order_scope:string,"
            ~ "on_dead:string,expires_after_seconds:double"
        ) | indent(8) }}
    ),

    event_types as (
        select distinct event_type from outbox_ordered_deliveries
        where not {{ delta_outbox.is_reserved("event_type") }}
    ),

    matched as (
        select
            k.policy_version,
            t.event_type,
            min_by(struct(k.ordering, k.destination, k.order_scope, k.on_dead, k.expires_after_seconds), k.position) as policy
        from event_types as t
        inner join kept as k on t.event_type rlike k.regex
        group by k.policy_version, t.event_type
    )

    select * from matched
    where policy.ordering = 'strict'
{%- endmacro %}
