{% macro workflow_problems(rows, problems) -%}
    {#-
        Find everything that rows of workflows show to be wrong, whoever wrote them. The rules have the names that
        `outbox workflow check` gives them (docs/railway/tasks.md); the remedies speak of cells instead of classes. What
        `outbox workflow build` writes of good workflows has no problem, and both sides find the same in bad graphs
        (tests/unit/railway/test_workflow_macros.py), so this uses nothing of dbt's but its modules and `local_md5`.

        Arguments:
            rows: mapping, seed to a list of rows (mappings of column to text)
            problems: list, takes a sentence per problem
    -#}
    {%- set workflows = {} -%}
    {%- for row in rows["railway_workflows"] -%}
        {%- if row["workflow"] in workflows -%}
            {%- do delta_outbox.workflow_problem(
                problems, row["workflow"], "workflow_twice", "two workflows have this name.", "Rename one of them."
            ) -%}
        {%- endif -%}
        {%- do workflows.update({row["workflow"]: {"row": row, "tasks": {}}}) -%}
    {%- endfor -%}

    {%- for seed, kind in [("railway_tasks", "task"), ("railway_routes", "route"), ("railway_contracts", "contract")] -%}
        {%- for row in rows[seed] -%}
            {%- set where = row["workflow"] ~ "." ~ row["task"] -%}
            {%- set tasks = workflows.get(row["workflow"], {}).get("tasks") -%}
            {%- if tasks is none -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "no_such_workflow", "railway_workflows has no row of its workflow.",
                    "Add one, or remove this row of " ~ seed ~ "."
                ) -%}
            {%- elif kind == "task" and row["task"] in tasks -%}
                {%- do delta_outbox.workflow_problem(
                    problems, row["workflow"], "task_name_twice", "two tasks are called " ~ row["task"] ~ ".",
                    "Rename one of them."
                ) -%}
            {%- elif kind == "task" -%}
                {%- do tasks.update({row["task"]: {"row": row, "route": [], "contract": []}}) -%}
            {%- elif row["task"] not in tasks -%}
                {%- do delta_outbox.workflow_problem(
                    problems, where, "no_such_task", "railway_tasks has no row of this task.",
                    "Add one, or remove the row of " ~ seed ~ "."
                ) -%}
            {%- else -%}
                {%- do tasks[row["task"]][kind].append(row) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}

    {%- for name, workflow in workflows.items() -%}
        {%- set found = [] -%}
        {%- do delta_outbox.workflow_row_problems(name, workflow, found) -%}
        {%- for task, one in workflow["tasks"].items() -%}
            {%- do delta_outbox.workflow_task_problems(workflow, name ~ "." ~ task, one, found) -%}
            {%- do delta_outbox.workflow_route_problems(workflow, name ~ "." ~ task, one, found) -%}
        {%- endfor -%}
        {%- if not found and not problems -%}
            {%- do delta_outbox.workflow_graph_problems(name, workflow, found) -%}
            {%- do delta_outbox.workflow_identifier_problems({name: workflow}, false, found) -%}
        {%- endif -%}
        {%- do workflow.update({"problems": found}) -%}
    {%- endfor -%}
    {%- for workflow in workflows.values() -%} {%- do problems.extend(workflow["problems"]) -%} {%- endfor -%}
    {%- if problems -%}
        {{- return("") -}}  {#- The rest would only repeat it. -#}
    {%- endif -%}

    {%- do delta_outbox.workflow_identifier_problems(workflows, true, problems) -%}
    {%- do delta_outbox.workflow_circle_problems(workflows, problems) -%}
    {%- for name, workflow in workflows.items() if workflow["row"]["hash"] -%}
        {%- if workflow["row"]["hash"] != delta_outbox.workflow_hash(rows, name) -%}
            {%- do delta_outbox.workflow_problem(
                problems, name, "rows_changed", "its rows are not those that `outbox workflow build` wrote.",
                "Run it again; to go on by hand, take its module out of `[workflows] modules` and empty the column hash."
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
