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
    {%- set kept = namespace(done=false) -%}
    {%- for _ in range(20) if not kept.done -%}
        {%- set last = delta_outbox.last_workflows() -%}
        {%- set kept.done = last["version"] == version -%}
        {%- if not kept.done -%}
            {%- set number = (last["number"] or 0) + 1 -%}
            {%- do run_query(delta_outbox.append_plan(
                progress, "workflows", number, {"version": version, "rows": rows}
            )) -%}
            {%- set kept.done = delta_outbox.last_workflows(until=number)["version"] == version -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not kept.done -%}
        {{ exceptions.raise_compiler_error(
            "BAD_WORKFLOW: other builds were faster 20 times, or outbox_progress has lost numbered writes of `workflows`. "
            ~ "Build again; if that does not help, restore outbox_progress to the version before."
        ) }}
    {%- endif -%}
{%- endmacro %}
