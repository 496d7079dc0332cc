{% macro workflow_row_problems(name, workflow, problems) -%}
    {#-
        What is wrong with the row of a workflow, taken by itself.

        Arguments:
            name: of the workflow
            workflow: mapping of `workflow_problems`
            problems: list, takes a sentence per problem
    -#}
    {%- set row = workflow["row"] -%}
    {%- if not delta_outbox.workflow_is_name(name) -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "workflow_name", "'" ~ name ~ "' is no name.", "Use lower-case words joined by `_`."
        ) -%}
    {%- endif -%}
    {%- if not modules.re.fullmatch("[1-9][0-9]{0,8}", row["version"]) -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "version", "version is " ~ delta_outbox.shown(row["version"]) ~ ".", "Count versions from 1."
        ) -%}
    {%- endif -%}
    {%- if not row["starts_on"].strip() or row["starts_on"].startswith("workflow:") -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "starts_on", "'" ~ row["starts_on"] ~ "' cannot be the type of a start event.",
            "Name a domain event; types that begin with 'workflow:' belong to tasks."
        ) -%}
    {%- endif -%}
    {%- do delta_outbox.workflow_event_problems(name, row["default_exit"], problems) -%}
    {%- if not delta_outbox.workflow_seconds(row["lease_seconds"]) -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "lease", "lease_seconds is " ~ delta_outbox.shown(row["lease_seconds"]) ~ ".",
            "Write a number of seconds, such as 120."
        ) -%}
    {%- endif -%}
    {%- set fields = delta_outbox.workflow_start_fields(row["start_fields"]) -%}
    {%- set taken = [] -%}
    {%- for field in ["instance", "task", "visit", "workflow"] if field in fields -%}
        {%- do taken.append(field) -%}
    {%- endfor -%}
    {%- if taken -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "start_fields",
            "the start event has the fields " ~ taken | join(", ") ~ ", which identifiers use for other things.",
            "Rename them."
        ) -%}
    {%- endif -%}
    {%- if row["start_contract"] and fromjson(row["start_contract"]) is not mapping -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "start_no_schema", "start_contract is no JSON Schema.", "Write one, or leave the cell empty."
        ) -%}
    {%- endif -%}
    {%- do delta_outbox.workflow_template_problems("instance", row["instance"], fields + ["event_id"], name, problems) -%}
    {%- if not workflow["tasks"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "routes", "it has no tasks.", "Add a row of railway_tasks for each."
        ) -%}
    {%- elif row["first_task"] not in workflow["tasks"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, name, "first_without_route", "it begins with " ~ row["first_task"] ~ ", which has no row.",
            "Add it to railway_tasks, or name another one by first_task."
        ) -%}
    {%- endif -%}
{%- endmacro %}
