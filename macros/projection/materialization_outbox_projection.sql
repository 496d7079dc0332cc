{% materialization outbox_projection, adapter="spark" %}
    {#-
        Refresh the projection incrementally. The model's SQL is the fold of what is new; the script around it plans the
        range, takes the race with other refreshers, and writes. `--full-refresh` derives everything anew.
    -#}
    {%- set target_relation = this.incorporate(type="table") -%}

    {{ run_hooks(pre_hooks) }}
    {%- do run_query(delta_outbox.ddl_state(target_relation)) -%}
    {% call statement("main") -%}
        {{ delta_outbox.refresh_script(target_relation, sql, should_full_refresh()) }}
    {%- endcall %}
    {%- do persist_docs(target_relation, model) -%}
    {{ run_hooks(post_hooks) }}

    {{ return({"relations": [target_relation]}) }}
{% endmaterialization %}
