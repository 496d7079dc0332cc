{% macro applied_plan(state, at=none) -%}
    {#-
        The number of the plan that the projection stands at, 0 if nothing says so. Maintenance may have been committed
        since; a RESTORE has taken the rows back.

        twin: python/delta_outbox/projection/refresh.py::newest_refresh

        Arguments:
            state: relation, the projection
            at: its version that is meant; the last one if left out
    -#}
    {%- for limit in ("limit 20", "") -%}
        {%- for commit in run_query("describe history " ~ state ~ " " ~ limit) if at is none or commit["version"] | int <= at -%}
            {%- set tag = commit["userMetadata"] or "" -%}
            {%- if commit["operation"] == "RESTORE" -%}
                {{ return(0) }}
            {%- elif tag.startswith("outbox/projection/") -%}
                {{ return(tag[18:] | int) }}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(0) }}
{%- endmacro %}
