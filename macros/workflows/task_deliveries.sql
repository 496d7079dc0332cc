{% macro task_deliveries(state=none) -%}
    {#-
        The rows of the projection that are tasks.

        Argument: relation, the projection at a version; as it is if left out.
    -#}
    select * from {{ state or ref("outbox_state") }}
    where {{ delta_outbox.is_task() }}
{%- endmacro %}
