{% macro applied_plan(state) -%}
    {#- The number of the plan that the latest commits of the projection carry, 0 if none of them does. -#}
    {%- for commit in run_query("describe history " ~ state ~ " limit 20") -%}
        {%- set mark = commit["userMetadata"] or "" -%}
        {%- if mark.startswith("outbox/projection/") -%}
            {{ return(mark[18:] | int) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(0) }}
{%- endmacro %}
