{% macro workflow_rows(problems) -%}
    {#-
        Read the seeds of workflows of the project that is built: a mapping of seed to rows, sorted, each a mapping of column
        to text. A column that is left out is empty. What this dbt command has loaded is read as it has loaded it: then the
        rows are one set, whatever other builds load meanwhile.

        Arguments:
            problems: list, takes a sentence for each column that nobody reads
    -#}
    {%- set rows = {} -%}
    {%- for seed, columns in delta_outbox.workflow_columns().items() -%}
        {%- set found = [] -%}
        {%- set loaded = selected_resources | select("in", ["seed." ~ model.package_name ~ "." ~ seed]) | list -%}
        {%- set version = delta_outbox.workflow_seed_version(ref(seed)) if loaded else "" -%}
        {%- set table = run_query("select * from " ~ ref(seed) ~ version) -%}
        {%- for row in table.rows -%}
            {%- set cells = {} -%}
            {%- for name in columns -%}
                {%- set cell = row[name] if name in table.column_names else none -%}
                {%- do cells.update({name: "" if cell is none else cell | string}) -%}
            {%- endfor -%}
            {%- do found.append(cells) -%}
        {%- endfor -%}
        {%- for name in table.column_names if name not in columns -%}
            {%- do delta_outbox.workflow_problem(
                problems, seed, "no_such_column", "nobody reads its column " ~ delta_outbox.shown(name) ~ ".",
                "Its columns are " ~ columns | join(", ") ~ "."
            ) -%}
        {%- endfor -%}
        {%- do rows.update({seed: found | sort(attribute=columns | join(","), case_sensitive=true)}) -%}
    {%- endfor -%}
    {{- return(rows) -}}
{%- endmacro %}
