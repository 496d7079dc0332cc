{% macro check_policies(table) -%}
    {#-
        Pre-hook of the policy seed: refuse it, before anything is touched, with everything that is wrong.

        The last good rows stay, and what depends on the seed is skipped. The mark BAD_POLICY tells the command line.

        Arguments:
            table: agate table, `load_agate_table()`
    -#}
    {%- if execute -%}
        {%- set rows = [] -%}
        {%- for row in table.rows -%}
            {%- do rows.append(dict(zip(table.column_names, row.values()))) -%}
        {%- endfor -%}
        {%- set problems = [] -%}
        {%- do delta_outbox.policy_problems(rows, problems) -%}
        {%- if problems -%}
            {{ exceptions.raise_compiler_error(
                "BAD_POLICY: the last good policies stay in force (row n is line n + 1 of the file).\n- "
                ~ problems | join("\n- ")
            ) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
