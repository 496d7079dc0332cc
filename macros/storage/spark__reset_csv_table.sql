{% macro spark__reset_csv_table(model, full_refresh, old_relation, agate_table) -%}
    {#- Make the table of a seed anew. Those of workflows are replaced and never dropped: another build may be reading them. -#}
    {%- if model.name in delta_outbox.workflow_columns() -%}
        {{- return(delta_outbox.load_workflow_seed(agate_table)) -}}
    {%- endif -%}
    {{- return(dbt.spark__reset_csv_table(model, full_refresh, old_relation, agate_table)) -}}
{%- endmacro %}
