{% macro workflow_hash(rows, workflow=none) -%}
    {#-
        The hash of rows: of all rows, or of those of one workflow.

        twin: python/delta_outbox/railway/rows.py::hash_of

        Arguments:
            rows: mapping, seed to a list of rows (mappings of column to text)
            workflow: name, none for all
    -#}
    {%- set lines = [] -%}
    {%- for seed, columns in delta_outbox.workflow_columns().items() -%}
        {%- for row in rows[seed] if workflow is none or row["workflow"] == workflow -%}
            {%- set cells = [seed] -%}
            {%- for name in columns if name != "hash" -%}
                {%- do cells.append(row[name]) -%}
            {%- endfor -%}
            {%- do lines.append(cells | join("|")) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(local_md5(lines | sort(case_sensitive=true) | join("\n"))) -}}
{%- endmacro %}
