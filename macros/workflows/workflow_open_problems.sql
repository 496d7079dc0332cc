{% macro workflow_open_problems(open_tasks, routes, rows, problems) -%}
    {#-
        What rows would do to open instances: each follows the routes of the version that it has started with, and a task that the
        rows do not have has no code any more.

        Arguments:
            open_tasks: list of mappings: number of the numbered write of `workflows` by which instances go, workflow, task at
                which they stand, and instances, how many
            routes: list of mappings: number, workflow, task and to_task, of these numbered writes
            rows: mapping of `workflow_rows`
            problems: list, takes a sentence per task
    -#}
    {%- set there, follows, lost = [], {}, {} -%}
    {%- for row in rows["railway_tasks"] -%} {%- do there.append(row["workflow"] ~ "." ~ row["task"]) -%} {%- endfor -%}
    {%- for row in routes if row["to_task"] -%}
        {%- set place = row["number"] ~ "." ~ row["workflow"] ~ "." ~ row["task"] -%}
        {%- do follows.setdefault(place, []).append(row["number"] ~ "." ~ row["workflow"] ~ "." ~ row["to_task"]) -%}
    {%- endfor -%}
    {%- for one in open_tasks -%}
        {%- set place = one["number"] ~ "." ~ one["workflow"] ~ "." ~ one["task"] -%}
        {%- set reach = [place] + delta_outbox.workflow_reach(place, follows) -%}
        {%- for name in reach | unique(case_sensitive=true) -%}
            {%- set where = name.split(".", 1)[1] -%}
            {%- if where not in there -%} {%- do lost.update({where: lost.get(where, 0) + one["instances"]}) -%} {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for where, count in lost.items() | sort -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "open_instances",
            "it is gone, and " ~ count ~ " open instance(s) of earlier rows stand there or may still come there.",
            "Build with it until they have ended, or end or move them: `outbox workflow cancel`, `outbox workflow migrate`."
        ) -%}
    {%- endfor -%}
{%- endmacro %}
