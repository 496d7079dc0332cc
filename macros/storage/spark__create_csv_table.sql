{% macro spark__create_csv_table(model, agate_table) -%}
    {#- Make the table of a seed. Those of workflows are there with their rows at once, in whatever project they are. -#}
    {%- if model.name in delta_outbox.workflow_columns() -%}
        {{- return(delta_outbox.load_workflow_seed(agate_table)) -}}
    {%- endif -%}
    {{- return(dbt.spark__create_csv_table(model, agate_table)) -}}
{%- endmacro %}
