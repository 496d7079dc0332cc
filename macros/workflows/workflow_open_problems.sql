{% macro workflow_open_problems(open_tasks, routes, categories, rows, problems) -%}
    {#-
        What rows would do to open instances: each follows the routes and the rules of the version that it has started with, and a
        task that the rows do not have, or have in another category, has no code for these rules any more.

        Arguments:
            open_tasks: list of mappings, the rows of `open_tasks_select`
            routes: list of mappings: number, workflow, task and to_task, of these numbered writes
            categories: list of mappings: number, workflow, task and category, of them as well
            rows: mapping of `workflow_rows`
            problems: list, takes a sentence per task
    -#}
    {%- set there, before, follows, lost, changed = {}, {}, {}, {}, {} -%}
    {%- for row in rows["railway_tasks"] -%}
        {%- do there.update({row["workflow"] ~ "." ~ row["task"]: row["category"]}) -%}
    {%- endfor -%}
    {%- for row in categories -%}
        {%- do before.update({row["number"] ~ "." ~ row["workflow"] ~ "." ~ row["task"]: row["category"]}) -%}
    {%- endfor -%}
    {%- for row in routes if row["to_task"] -%}
        {%- set place = row["number"] ~ "." ~ row["workflow"] ~ "." ~ row["task"] -%}
        {%- do follows.setdefault(place, []).append(row["number"] ~ "." ~ row["workflow"] ~ "." ~ row["to_task"]) -%}
    {%- endfor -%}
    {%- for one in open_tasks -%}
        {%- set place = one["number"] ~ "." ~ one["workflow"] ~ "." ~ one["task"] -%}
        {%- set reach = ([place] if one["stands"] else []) + delta_outbox.workflow_reach(place, follows) -%}
        {%- for name in reach | unique(case_sensitive=true) -%}
            {%- set where = name.split(".", 1)[1] -%}
            {%- if where not in there -%}
                {%- do lost.update({where: lost.get(where, 0) + one["instances"]}) -%}
            {%- elif name in before and before[name] != there[where] -%}
                {%- do changed.update({where: changed.get(where, 0) + one["instances"]}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for found, says, remedy in [
        (
            lost, "it is gone",
            "Build with it until they have ended, or end or move them: `outbox workflow cancel`, `outbox workflow migrate`."
        ),
        (
            changed, "it has another category",
            "Give the task of the new category another name, and keep this one until they have ended, or end or move them."
        ),
    ] -%}
        {%- for where, count in found.items() | sort -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "open_instances",
                says ~ ", and " ~ count ~ " open instance(s) of earlier rows stand there or may still come there.",
                remedy
            ) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}
