{% macro endable(deliveries, policy_rows, now, due_by) -%}
    {#-
        The waiting deliveries that are to be ended without being sent: an operator has asked for it, or they are past the
        age that their policy allows. They are due, for nothing is claimed before that, and no order holds them back.

        Arguments: those of `eligible`, and
            due_by: SQL expression, the time by which they are due; later than now, to know them before
    -#}
    with waiting as (
        select * from {{ deliveries }}
        where
            state = 'PENDING'
            and {{ delta_outbox.is_due(due_by) }}
    ),

    event_types as (
        select distinct event_type from waiting
    ),

    policies as (
        {{ delta_outbox.policy_of_event_type("event_types", policy_rows) | indent(8) }}
    )

    select /*+ broadcast(p) */ w.*
    from waiting as w
    left join policies as p on w.event_type = p.event_type
    where
        w.kill_command_id is not null
        or {{ delta_outbox.is_too_old(delta_outbox.age_from(), now) }}
{%- endmacro %}
