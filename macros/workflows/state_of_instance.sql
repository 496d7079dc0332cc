{% macro state_of_instance() -%}
    {#- The state of an instance by its open task: an expression over columns of `workflow_tasks`. -#}
    case
        when category = 'to_do' then 'waiting_for_person'
        when delivery_state = 'PENDING' and available_at > {{ delta_outbox.now_utc() }} then 'waiting_for_time'
        else 'running'
    end
{%- endmacro %}
