{% macro load_workflow_seed(agate_table) -%}
    {#-
        Put the rows of a seed of workflows in the place of those that were there, by one commit that says which dbt command
        has made it: of two builds beside each other each finds its own rows (`workflow_seed_version`). Whoever loses the race
        for the commit (2D521) has written nothing, and tries again. Every column is text, as it stands in the file.

        Arguments:
            agate_table: the seed, `load_agate_table()`
    -#}
    {%- set texts = delta_outbox.workflow_columns()[model.name] | reject("eq", "version") | list -%}
    {%- set guessed = [] -%}
    {%- for name in agate_table.column_names if name in texts and not name.endswith("_seconds") -%}
        {%- for cell in agate_table.columns[name].values() if cell is not none and cell is not string and name not in guessed -%}
            {%- do guessed.append(name) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if guessed -%}
        {%- set problems = [] -%}
        {%- do delta_outbox.workflow_problem(
            problems, model.name, "type_guessed",
            "dbt took its " ~ guessed | join(", ") ~ " for numbers, dates or true and false, so they are not as they were written.",
            "Name the types of its columns in a yml: `column_types`, each `string`."
        ) -%}
        {{ exceptions.raise_compiler_error("BAD_WORKFLOW: the workflows that passed last stay in force.\n- " ~ problems[0]) }}
    {%- endif -%}
    {%- set properties = dict(config.get("tblproperties") or {}, **{"delta_outbox.loaded_by": invocation_id}) -%}
    {%- set sql -%}
begin
    declare exit handler for sqlstate '2D521' begin end;
    create or replace table {{ this.render() }}
    using delta
    {{ location_clause() }}
    {{ comment_clause() }}
    tblproperties (
        {%- for name, value in properties.items() %}
        {{ delta_outbox.text_literal(name) }} = {{ delta_outbox.text_literal(value) }}{{ "," if not loop.last }}
        {%- endfor %}
    )
    as select * from values
        {%- for row in agate_table.rows %}
        (
            {%- for cell in row.values() -%}
                {{ "cast(null as string)" if cell is none else delta_outbox.text_literal(cell) }}{{ ", " if not loop.last }}
            {%- endfor -%}
        ){{ "," if not loop.last }}
        {%- else %}
        ({% for _ in agate_table.column_names %}cast(null as string){{ ", " if not loop.last }}{% endfor %})
        {%- endfor %}
        as seed ({{ get_seed_column_quoted_csv(model, agate_table.column_names) }})
    {%- if not agate_table.rows %}
    where false
    {%- endif %};
end
    {%- endset -%}
    {%- set loaded = namespace(version="") -%}
    {%- for _ in range(20) if not loaded.version -%}
        {%- do run_query(sql) -%}
        {%- set loaded.version = delta_outbox.workflow_seed_version(this) -%}
    {%- endfor -%}
    {%- if not loaded.version -%}
        {{ exceptions.raise_compiler_error(
            "BAD_WORKFLOW: other builds were faster 20 times to load " ~ model.name ~ ". Build again."
        ) }}
    {%- endif -%}
    {{- return("seed") -}}
{%- endmacro %}
