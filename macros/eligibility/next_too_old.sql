{% macro next_too_old(deliveries, policy_rows, now) -%}
    {#-
        When the first of the waiting deliveries will be past the age that its policy allows, and due; null if time makes
        none so. A column `at`, microseconds since 1970.

        Arguments: those of `eligible`
    -#}
    with waiting as (
        select
            event_type,
            unix_micros(available_at) as due,
            unix_micros({{ delta_outbox.age_from() }}) as age_from
        from {{ deliveries }}
        where state = 'PENDING' and kill_command_id is null
    ),

    event_types as (
        select distinct event_type from waiting
    ),

    policies as (
        {{ delta_outbox.policy_of_event_type("event_types", policy_rows) | indent(8) }}
    ),

    moments as (
        select /*+ broadcast(p) */
            greatest(w.due, w.age_from + cast(p.policy.expires_after_seconds as double) * 1000000) as at
        from waiting as w
        inner join policies as p on w.event_type = p.event_type
        where p.policy.expires_after_seconds is not null
    )

    select min(at) as at
    from moments
    where at > unix_micros({{ now }})
{%- endmacro %}
