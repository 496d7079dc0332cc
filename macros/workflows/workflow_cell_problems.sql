{% macro workflow_cell_problems(name, column, row, where, seconds, problems) -%}
    {#-
        What is wrong with a cell of a task.

        Arguments:
            name: of the column
            column: mapping of `workflow_task_columns`
            row: of railway_tasks
            where: text, `workflow.task`
            seconds: mapping, takes the number of a span that is right
            problems: list, takes a sentence per problem
    -#}
    {%- set category = row["category"] -%}
    {%- set longest = 315360000.0 -%}  {#- seconds of ten years -#}
    {%- set cell = row[name].strip() -%}
    {%- set instead = row[column["instead"]].strip() if "instead" in column else "" -%}
    {%- set number = delta_outbox.workflow_seconds(cell) if "span" in column else none -%}
    {%- if category not in column["of"] -%}
        {%- if cell -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, "attribute_of_another_category",
                "`" ~ name ~ "` has no effect on a task of category " ~ category ~ ".",
                "Empty it, or choose the category that it belongs to."
            ) -%}
        {%- endif -%}
    {%- elif not cell and not instead -%}
        {%- if "needed" in column -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, column["needed"], "its `" ~ name ~ "` is empty.",
                "Fill it in" ~ (", or write into `" ~ column["instead"] ~ "` why it never comes" if "instead" in column else "") ~ "."
            ) -%}
        {%- endif -%}
    {%- elif cell and instead -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, column["span"] ~ "_and_never", "it has `" ~ name ~ "` and `" ~ column["instead"] ~ "`.",
            "Empty one of them."
        ) -%}
    {%- elif cell and "span" in column -%}
        {%- if number is none -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, column["span"] ~ "_no_duration", "`" ~ name ~ "` is " ~ delta_outbox.shown(cell) ~ ".",
                "Write a number of seconds."
            ) -%}
        {%- elif not 0 < number <= longest -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, column["span"] ~ "_out_of_range", "`" ~ name ~ "` is " ~ cell ~ ".",
                "It must be more than 0 and at most ten years."
            ) -%}
        {%- else -%}
            {%- do seconds.update({column["span"]: number}) -%}
        {%- endif -%}
    {%- elif "choices" in column -%}
        {%- for word in (cell.split("|") if name == "risks" else [cell]) if word.strip() not in column["choices"] -%}
            {%- do delta_outbox.workflow_problem(
                problems, where, column.get("broken", "concerns_no_members"), "`" ~ name ~ "` is " ~ delta_outbox.shown(cell) ~ ".",
                "Write " ~ ("some" if name == "risks" else "one") ~ " of " ~ column["choices"] | join(", ") ~ "."
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
