{% macro keep_workflows(rows) -%}
    {#-
        Keep rows that have passed every check as the numbered write of `workflows` that is in force, unless they are already.
        A plan is believed when it has been read back: a number that another build was faster to take is skipped without a
        word (2D521 where both commit at once).

        Arguments:
            rows: mapping of `workflow_rows`
    -#}
    {%- set progress = source("outbox", "outbox_progress") -%}
    {%- set version = delta_outbox.workflow_hash(rows) -%}
    {%- set kept = namespace(version=none) -%}
    {%- for _ in range(20) if kept.version != version -%}
        {%- set last = (run_query(
            "select max(number) as number, max_by(get_json_object(plan, '$.version'), number) as version from "
            ~ progress ~ " where writer = 'workflows'"
        ).rows | first) -%}
        {%- set kept.version = last["version"] -%}
        {%- if kept.version != version -%}
            {%- do run_query(delta_outbox.append_plan(
                progress, "workflows", (last["number"] or 0) + 1, {"version": version, "rows": rows}
            )) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if kept.version != version -%}
        {{ exceptions.raise_compiler_error(
            "BAD_WORKFLOW: other builds were faster 20 times, or outbox_progress has lost numbered writes of `workflows`. "
            ~ "Build again; if that does not help, restore outbox_progress to the version before."
        ) }}
    {%- endif -%}
{%- endmacro %}
