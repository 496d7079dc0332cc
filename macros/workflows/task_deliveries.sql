{% macro task_deliveries() -%}
    {#-
        The rows of the projection that are tasks. A task is DEAD by an operator only: what a relay has rejected was made by no
        numbered write, and is no task.
    -#}
    select * from {{ ref("outbox_state") }}
    where
        {{ delta_outbox.is_reserved("event_type") }}
        and not ambiguous
        and (state <> 'DEAD' or reason = 'operator')
{%- endmacro %}
