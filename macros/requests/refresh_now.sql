{% macro refresh_now() -%}
    {#-
        Bring the projection up to everything that was committed before, and return the version of its table. For
        operations, which dbt runs without any model.
    -#}
    {%- set state = ref("outbox_state") -%}
    {%- do run_query(delta_outbox.refresh_script(state, delta_outbox.fold_all(state))) -%}
    {{ return(delta_outbox.latest_version(state)) }}
{%- endmacro %}
