{% macro log_names() -%}
    {#- The five logs, in the order in which they are created. -#}
    {{ return(["outbox_events", "outbox_transitions", "outbox_commands", "outbox_progress", "outbox_relays"]) }}
{%- endmacro %}
