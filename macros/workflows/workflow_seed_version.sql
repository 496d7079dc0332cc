{% macro workflow_seed_version(seed) -%}
    {#-
        The clause that reads the rows which this dbt command has loaded into a seed of workflows, also where another build
        has loaded its own since; nothing where it has loaded none.

        Arguments:
            seed: relation
    -#}
    {%- set mine = [] -%}
    {%- for commit in run_query("describe history " ~ seed ~ " limit 100").rows -%}
        {%- if invocation_id in commit["operationParameters"] | string -%} {%- do mine.append(commit["version"]) -%} {%- endif -%}
    {%- endfor -%}
    {{- return(" version as of " ~ mine[0] if mine else "") -}}
{%- endmacro %}
