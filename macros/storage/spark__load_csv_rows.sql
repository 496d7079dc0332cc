{% macro spark__load_csv_rows(model, agate_table) %}
    {#-
        Load our seed with every value as an escaped literal; dbt-spark's session method quotes without escaping. The rows of
        workflows are in their tables already (`load_workflow_seed`). Other seeds of other projects are loaded as they were.
    -#}
    {%- if model.name in delta_outbox.workflow_columns() -%}
        {{ return("seed") }}
    {%- endif -%}
    {%- if model.package_name != "delta_outbox" -%}
        {{ return(dbt.spark__load_csv_rows(model, agate_table)) }}
    {%- endif -%}
    {%- set types = model["config"].get("column_types", {}) -%}
    {%- for chunk_start in range(0, agate_table.rows | length, 1000) -%}
        {%- set chunk = agate_table.rows[chunk_start:chunk_start + 1000] -%}
        {%- set sql -%}
            insert into {{ this.render() }} ({{ get_seed_column_quoted_csv(model, agate_table.column_names) }})
            values
            {%- for row in chunk %}
            (
                {%- for value in row.values() -%}
                    {%- if value is none -%} null
                    {%- else -%} cast({{ delta_outbox.text_literal(value) }} as {{ types.get(agate_table.column_names[loop.index0], adapter.convert_type(agate_table, loop.index0)) }})
                    {%- endif -%}
                    {{ ", " if not loop.last }}
                {%- endfor -%}
            ){{ "," if not loop.last }}
            {%- endfor %}
        {%- endset -%}
        {%- do adapter.add_query(sql, abridge_sql_log=True) -%}
    {%- endfor -%}
    {{ return("seed") }}
{% endmacro %}
