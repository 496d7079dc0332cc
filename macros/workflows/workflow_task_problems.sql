{% macro workflow_task_problems(workflow, where, task, problems) -%}
    {#-
        What is wrong with the row of a task, taken by itself.

        Arguments:
            workflow: mapping of `workflow_problems`, whose task it is
            where: text, `workflow.task`
            task: mapping with the row of the task, those of its route, that of its contract
            problems: list, takes a sentence per problem
    -#}
    {%- set columns = delta_outbox.workflow_task_columns() -%}
    {%- set all, calls = columns["expires_seconds"]["of"], columns["third_party"]["of"] -%}
    {%- set row = task["row"] -%}
    {%- set category = row["category"] -%}
    {%- set seconds = {} -%}

    {%- if not delta_outbox.workflow_is_name(row["task"]) -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "task_name", "'" ~ row["task"] ~ "' is no name.", "Use lower-case words joined by `_`."
        ) -%}
    {%- endif -%}
    {%- if category not in all -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "no_category", "its category is " ~ delta_outbox.shown(category) ~ ".",
            "Write one of " ~ all | join(", ") ~ "."
        ) -%}
        {{- return("") -}}
    {%- endif -%}

    {%- for name, column in columns.items() -%}
        {%- do delta_outbox.workflow_cell_problems(name, column, row, where, seconds, problems) -%}
    {%- endfor -%}

    {%- if category in calls and row["third_party"].strip()
        and not delta_outbox.workflow_is_name(row["third_party"]) -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "third_party_name", "it calls '" ~ row["third_party"] ~ "', which is no name.",
            "Use lower-case words joined by `_`: it names the table [third_parties.NAME]."
        ) -%}
    {%- endif -%}
    {%- do delta_outbox.workflow_time_problems(workflow, row, where, seconds, problems) -%}
    {%- if category == "black_box" and row["compromise"] -%}
        {%- if modules.re.fullmatch("up_to_[01]?", row["compromise"]) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "up_to_too_few", "its compromise is " ~ row["compromise"] ~ ".",
                "Write at_most_once, or a number from 2."
            ) -%}
        {%- elif not modules.re.fullmatch("at_most_once|at_least_once|human|up_to_[1-9][0-9]{0,8}", row["compromise"]) -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "compromise_no_object", "`compromise` is " ~ delta_outbox.shown(row["compromise"]) ~ ".",
                "Write at_most_once, at_least_once, up_to_2 or human."
            ) -%}
        {%- endif -%}
    {%- endif -%}

    {%- for role in row["roles"].split("|") if row["roles"].strip() and not role.strip() -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "role_name", "a role of " ~ delta_outbox.shown(row["roles"]) ~ " is empty.",
            "Write names joined by `|`."
        ) -%}
    {%- endfor -%}

    {%- if category == "to_do" and row["sends_link"].strip()
        and not row["due_seconds"].strip() and not row["tells_opened"].strip() -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "link_in_no_event", "`sends_link` is yes, and no event tells of its items.",
            "Fill in `due_seconds`, write yes into `tells_opened`, or empty it."
        ) -%}
    {%- endif -%}

    {%- do delta_outbox.workflow_contract_problems(workflow, where, task, problems) -%}

    {%- set fields = delta_outbox.workflow_start_fields(workflow["row"]["start_fields"])
        + ["instance", "task", "visit", "workflow"] -%}
    {%- do delta_outbox.workflow_template_problems("identifier", row["identifier"], fields, where, problems) -%}
    {%- set fixed = {"workflow": workflow["row"]["workflow"], "task": row["task"]} -%}
    {%- set made = delta_outbox.workflow_template(row["identifier"], fixed) -%}
    {%- if not made["problem"] and made["pieces"][0].startswith("workflow:") -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "identifier_reserved", "identifier '" ~ row["identifier"] ~ "' begins with 'workflow:'.",
            "Let it begin otherwise: ids that begin so belong to the events that end instances."
        ) -%}
    {%- endif -%}
{%- endmacro %}
