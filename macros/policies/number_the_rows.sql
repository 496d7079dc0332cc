{% macro number_the_rows(table) -%}
    {#-
        Post-hook of the policy seed: replace the loaded table by the same rows with their position in the file.

        The first row that matches an event type wins, and a table has no order of its own. Each row also gets its pattern
        as a regular expression, cells lose the blanks around them, and columns that the file leaves out are there.

        Arguments:
            table: agate table that was checked, `load_agate_table()`
    -#}
    {%- if execute -%}
    {%- set columns = model.config.column_types | list -%}
    create or replace table {{ this }} using delta as
    select *
    from values
    {%- for row in table.rows %}
        {%- set cells = dict(zip(table.column_names, row.values())) -%}
        {%- set parts = [] -%}
        {%- do delta_outbox.read_glob(cells["event_type"].strip(), parts, []) %}
        (
            {{ loop.index }}
            {%- for name in columns -%}
                {%- set cell = ((cells.get(name) or "") | string).strip() -%}
                {%- if name == "destination" -%}
                    {%- set cell = modules.re.sub("\\s*[|]\\s*", "|", cell) -%}
                {%- endif -%}
                , {% if cell %}{{ delta_outbox.text_literal(cell) }}{% else %}cast(null as string){% endif %}
            {%- endfor -%}
            , {{ delta_outbox.text_literal(parts | join) }}
        ){{ "," if not loop.last }}
    {%- endfor %}
    as policy (position, {{ columns | join(", ") }}, event_type_regex)
    {%- endif -%}
{%- endmacro %}
