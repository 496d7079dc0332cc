{% materialization outbox_projection, adapter="spark" %}
    {#-
        Refresh the projection incrementally. The model's SQL is the fold of what is new; the script around it plans the
        range, takes the race with other refreshers, and merges. `--full-refresh` derives everything anew.
    -#}
    {%- set target_relation = this.incorporate(type="table") -%}
    {%- set events = source("outbox", "outbox_events") -%}
    {%- set transitions = source("outbox", "outbox_transitions") -%}
    {%- set commands = source("outbox", "outbox_commands") -%}
    {%- set progress = source("outbox", "outbox_progress") -%}

    {{ run_hooks(pre_hooks) }}
    {%- do run_query(delta_outbox.ddl_state(target_relation)) -%}
    {%- set commands_head = delta_outbox.head_version(commands) -%}
    {%- set transitions_head = delta_outbox.head_version(transitions) -%}
    {%- set events_head = delta_outbox.head_version(events) -%}
    {% call statement("main") -%}
        {{ delta_outbox.refresh_script(
            target_relation, events, transitions, commands, progress, sql, events_head, transitions_head, commands_head,
            delta_outbox.applied_plan(target_relation), "dbt " ~ invocation_id, should_full_refresh()
        ) }}
    {%- endcall %}
    {%- do persist_docs(target_relation, model) -%}
    {{ run_hooks(post_hooks) }}

    {{ return({"relations": [target_relation]}) }}
{% endmaterialization %}
