{% macro check_open_instances(rows, problems) -%}
    {#-
        Refuse rows that would strand open instances, as far as the projection has seen them.

        Arguments:
            rows: mapping of `workflow_rows`
            problems: list, takes a sentence per task
    -#}
    {%- set progress = source("outbox", "outbox_progress") -%}
    {%- set state = load_relation(progress.incorporate(path={"identifier": "outbox_state"})) -%}
    {%- if state is not none and delta_outbox.last_workflows()["number"] -%}
        {%- set open_tasks = run_query(delta_outbox.open_tasks_select(state)).rows -%}
        {%- set numbers = [] -%}
        {%- for one in open_tasks -%} {%- do numbers.append(one["number"]) -%} {%- endfor -%}
        {%- if numbers -%}
            {%- set meant = ") where number in (" ~ numbers | unique | join(", ") ~ ")" -%}
            {%- set routes = run_query(
                "select number, workflow, task, to_task from (" ~ delta_outbox.kept_rows("railway_routes") ~ meant
            ).rows -%}
            {%- set categories = run_query(
                "select number, workflow, task, category from (" ~ delta_outbox.kept_rows("railway_tasks") ~ meant
            ).rows -%}
            {%- do delta_outbox.workflow_open_problems(open_tasks, routes, categories, rows, problems) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
