{% macro any_strangers() -%}
    {#- The literal true if this build found a transition of something that was not open, else false: then nothing else is read. -#}
    {%- set relation = ref("checked_transitions") -%}
    {%- if delta_outbox.checks_now() -%}
        {%- set found = run_query("select 1 from " ~ relation ~ " where previous_state is null limit 1").rows | length -%}
        {{ return("true" if found else "false") }}
    {%- endif -%}
    {{ return("false") }}
{%- endmacro %}
