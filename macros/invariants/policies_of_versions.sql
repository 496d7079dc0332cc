{% macro policies_of_versions(transitions, deliveries, progress, current_policies) -%}
    {#-
        The policy of each event type under each version of the policies that decided a claim: its rows as they were kept
        (plans of the writer `policy` in `outbox_progress`), else those in force.

        Arguments:
            transitions: relation with policy_version and to_state
            deliveries: relation with event_type
            progress: relation, the log of plans
            current_policies: relation, the model policy_rows
        Columns: policy_version, event_type, destination, ordering, order_scope, on_dead, expires_after_seconds.
    -#}
    with versions as (
        select distinct policy_version from {{ transitions }}
        where to_state = 'CLAIMED'
    ),

    plans as (
        select
            get_json_object(plan, '$.version') as policy_version,
            max(get_json_object(plan, '$.rows')) as policy_rows
        from {{ progress }}
        where writer = 'policy'
        group by get_json_object(plan, '$.version')
    ),

    kept as (
        select
            policy_version,
            posexplode(
                from_json(
                    policy_rows,
                    'array<struct<event_type:string,destination:string,ordering:string,order_scope:string,on_dead:string,expires_after_seconds:string>>'
                )
            ) as (position, policy)
        from plans
    ),

    policy_rows as (
        select
            policy_version,
            position,
            policy.event_type as pattern,
            policy.destination as destination,
            policy.ordering as ordering,
            policy.order_scope as order_scope,
            policy.on_dead as on_dead,
            policy.expires_after_seconds as expires_after_seconds
        from kept
        union all
        select
            v.policy_version,
            p.position,
            p.event_type as pattern,
            p.destination,
            p.ordering,
            p.order_scope,
            p.on_dead,
            p.expires_after_seconds
        from versions as v
        left anti join plans on v.policy_version = plans.policy_version
        cross join {{ current_policies }} as p
    ),

    event_types as (
        select distinct event_type from {{ deliveries }}
    ),

    matched as (
        select
            v.policy_version,
            t.event_type,
            min_by(
                struct(p.destination, p.ordering, p.order_scope, p.on_dead, p.expires_after_seconds),
                p.position
            ) as policy
        from event_types as t
        cross join versions as v
        inner join policy_rows as p
            on
                v.policy_version <=> p.policy_version
                and t.event_type rlike {{ delta_outbox.glob_to_regex("p.pattern") }}
        group by v.policy_version, t.event_type
    )

    select
        policy_version,
        event_type,
        policy.destination as destination,
        policy.ordering as ordering,
        policy.order_scope as order_scope,
        policy.on_dead as on_dead,
        policy.expires_after_seconds as expires_after_seconds
    from matched
{%- endmacro %}
