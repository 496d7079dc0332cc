{% materialization outbox_invariants, adapter="spark" %}
    {#-
        Check what is new and keep what breaks a rule. First it is asked what of the range can break one (note_doubts); the
        model's SQL asks the rules over that (checked_rows). The violations are written, then the position: a build
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
    {%- if is_new -%} {%- do delta_outbox.note_doubts(state, range) -%} {%- endif -%}
    {%- set is_judged = is_new and (
        range["whole"] or range["judges_all"] or range["doubtful_events"] or range["doubtful_keys"] or range["broken_appends"]
        or range["rewrites"] or range["workflows"]
    ) -%}
    {% call statement("main") -%}
        {% if is_judged -%}
            insert {{ "overwrite" if range["whole"] else "into" }} {{ target_relation }} ({{ columns }}, found_at)
            select {{ columns | replace("details", "to_json(details)") }}, {{ delta_outbox.now_utc() }}
            from (
                {{ delta_outbox.checked_rows(state, range) }}
                {{ sql }}
                {{ delta_outbox.broken_by_workflows(range) }}
            )
        {%- else -%}
            select 'nothing to judge' as message
        {%- endif %}
    {%- endcall %}
    {%- if is_new or range["is_stale"] -%}
        {%- do run_query(delta_outbox.record_verification(source("outbox", "outbox_progress"), range)) -%}
    {%- endif -%}
    {%- do persist_docs(target_relation, model) -%}
    {{ run_hooks(post_hooks) }}

    {{ return({"relations": [target_relation]}) }}
{% endmaterialization %}
