{% macro is_task() -%}
    {#-
        The condition that a row of the projection is a task. A task is DEAD by an operator only: what a relay has rejected was made
        by no numbered write, and is no task.
    -#}
    {{ delta_outbox.is_reserved("event_type") }} and not ambiguous and (state <> 'DEAD' or reason = 'operator')
{%- endmacro %}
