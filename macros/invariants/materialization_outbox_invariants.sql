{% materialization outbox_invariants, adapter="spark" %}
    {#-
        Check what is new and keep what breaks a rule. The model's SQL asks the rules over the rows of the range
        (checked_rows); where nothing is new nothing is asked. First the violations are written, then the position: a build
        that ends between the two checks the range again, and the same violation twice is shown once.

        A range may have millions of rows, and Spark judges a table by its compressed files: what joins ranges says
        `merge`, or Spark would make hash tables of them until its memory ends.
    -#}
    {%- set target_relation = this.incorporate(type="table") -%}
    {%- set state = ref("outbox_state") -%}
    {%- set columns = delta_outbox.violation_columns() | list | join(", ") -%}

    {{ run_hooks(pre_hooks) }}
    {%- do run_query(delta_outbox.ddl_violations(target_relation)) -%}
    {%- set range = delta_outbox.invariant_range(state) -%}
    {%- set is_new = range["whole"] or range["events"] or range["transitions"] or range["rewrites"] or range["state_before"] != range["state_version"] -%}
    {%- set checked = delta_outbox.checked_rows(state, range) if is_new -%}
    {% call statement("main") -%}
        {% if is_new -%}
            insert {{ "overwrite" if range["whole"] else "into" }} {{ target_relation }} ({{ columns }}, found_at)
            select {{ columns | replace("details", "to_json(details)") }}, {{ delta_outbox.now_utc() }}
            from (
                {{ checked }}
                {{ sql }}
                {{ delta_outbox.broken_by_workflows(range) }}
            )
        {%- else -%}
            select 'nothing is new' as message
        {%- endif %}
    {%- endcall %}
    {%- if is_new or range["is_stale"] -%}
        {%- do run_query(delta_outbox.record_verification(source("outbox", "outbox_progress"), range)) -%}
    {%- endif -%}
    {%- do persist_docs(target_relation, model) -%}
    {{ run_hooks(post_hooks) }}

    {{ return({"relations": [target_relation]}) }}
{% endmaterialization %}
