{% materialization outbox_workflows, adapter="spark" %}
    {#-
        Check the rows of all workflows together, and put them into force: as a numbered write of `workflows`. The model is
        a view of it. Where a rule is broken the build fails with everything that is wrong, and what was in force before stays
        so.
    -#}
    {%- set target_relation = this.incorporate(type="view") -%}

    {{ run_hooks(pre_hooks) }}
    {%- set problems = [] -%}
    {%- set rows = delta_outbox.workflow_rows(problems) -%}
    {%- do delta_outbox.workflow_problems(rows, problems) -%}
    {%- do delta_outbox.check_open_instances(rows, problems) -%}
    {%- if problems -%}
        {{ exceptions.raise_compiler_error(
            "BAD_WORKFLOW: the workflows that passed last stay in force.\n- " ~ problems | join("\n- ")
        ) }}
    {%- endif -%}
    {%- set warnings = [] -%}
    {%- do delta_outbox.workflow_warnings(rows, warnings) -%}
    {%- for warning in warnings -%} {%- do exceptions.warn(warning) -%} {%- endfor -%}
    {%- do delta_outbox.keep_workflows(rows) -%}
    {% call statement("main") -%}
        create or replace view {{ target_relation }} as
        {{ sql }}
    {%- endcall %}
    {{ run_hooks(post_hooks) }}

    {{ return({"relations": [target_relation]}) }}
{% endmaterialization %}
