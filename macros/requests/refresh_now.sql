{% macro refresh_now() -%}
    {#-
        Bring the projection up to everything that was committed before, and return the version of its table. For
        operations, which dbt runs without any model.
    -#}
    {%- set state = ref("outbox_state") -%}
    {%- set events = source("outbox", "outbox_events") -%}
    {%- set transitions = source("outbox", "outbox_transitions") -%}
    {%- set commands = source("outbox", "outbox_commands") -%}
    {%- set progress = source("outbox", "outbox_progress") -%}
    {%- set commands_head = delta_outbox.head_version(commands) -%}
    {%- set transitions_head = delta_outbox.head_version(transitions) -%}
    {%- set events_head = delta_outbox.head_version(events) -%}
    {%- do run_query(delta_outbox.refresh_script(
        state, events, transitions, commands, progress, delta_outbox.fold(state),
        events_head, transitions_head, commands_head, delta_outbox.applied_plan(state), "dbt " ~ invocation_id
    )) -%}
    {%- do delta_outbox.forget_write_version() -%}
    {{ return(delta_outbox.head_version(state)) }}
{%- endmacro %}
