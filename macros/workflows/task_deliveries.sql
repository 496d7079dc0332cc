{% macro task_deliveries(state=none) -%}
    {#-
        The rows of the projection that are tasks. A task is DEAD by an operator only: what a relay has rejected was made by no
        numbered write, and is no task.

        Argument: relation, the projection at a version; as it is if left out.
    -#}
    select * from {{ state or ref("outbox_state") }}
    where
        {{ delta_outbox.is_reserved("event_type") }}
        and not ambiguous
        and (state <> 'DEAD' or reason = 'operator')
{%- endmacro %}
