{% macro workflow_warnings(rows, warnings) -%}
    {#-
        Name what is allowed in rows without a problem, and somebody should know: the warnings of `outbox workflow check`.

        Arguments:
            rows: mapping, seed to a list of rows (mappings of column to text)
            warnings: list, takes a sentence per warning
    -#}
    {%- set tasks, exits = {}, [] -%}
    {%- for row in rows["railway_tasks"] -%}
        {%- set where = row["workflow"] ~ "." ~ row["task"] -%}
        {%- do tasks.update({where: row}) -%}
        {%- if row["compromise"] == "at_least_once" and row["never_expires_why"] -%}
            {%- do delta_outbox.workflow_problem(
                warnings, where, "at_least_once_for_ever",
                "it is tried again without end: at least once, and it never expires.",
                "Let it expire, unless that is meant."
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for row in rows["railway_routes"] if row["cause"] == "expired" and not row["outcome"] -%}
        {%- do exits.append(row["workflow"] ~ "." ~ row["task"]) -%}
    {%- endfor -%}
    {%- for row in rows["railway_routes"] if row["cause"] == "uncertain" and row["to_task"] -%}
        {%- set asked = row["workflow"] ~ "." ~ row["to_task"] -%}
        {%- if tasks[asked]["category"] == "to_do" and asked in exits -%}
            {%- do delta_outbox.workflow_problem(
                warnings, row["workflow"] ~ "." ~ row["task"], "uncertainty_expires",
                "when nobody knows whether it was done, " ~ row["to_task"] ~ " asks; and if nobody answers within "
                ~ tasks[asked]["expires_seconds"] ~ " s, the default exit follows.",
                "Let " ~ row["to_task"] ~ " never expire, or give its expiry an outcome."
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
