{% macro workflow_circle_problems(workflows, problems) -%}
    {#-
        Workflows that start each other for ever; each circle is named once.

        twin: python/delta_outbox/railway/checks/between_workflows.py::circles

        Arguments:
            workflows: mapping, name to mapping of `workflow_problems` with what follows each task
            problems: list, takes a sentence per problem
    -#}
    {%- set starts = {} -%}
    {%- for name, workflow in workflows.items() -%}
        {%- set started = [] -%}
        {%- for target in delta_outbox.workflow_reach(workflow["row"]["first_task"], workflow["follows"]) -%}
            {%- for other, found in workflows.items() if target == "event " ~ found["row"]["starts_on"] -%}
                {%- do started.append(other) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- do starts.update({name: started}) -%}
    {%- endfor -%}
    {%- for name in workflows -%}
        {%- set circle = [] -%}
        {%- for other in delta_outbox.workflow_reach(name, starts) -%}
            {%- if name in delta_outbox.workflow_reach(other, starts) -%} {%- do circle.append(other) -%} {%- endif -%}
        {%- endfor -%}
        {%- if circle and name == circle | min -%}
            {%- do delta_outbox.workflow_problem(
                problems, name, "workflows_go_in_circles",
                "workflows start each other without end: " ~ circle | sort | join(", ") ~ ".",
                "Let one of them end with an event type that starts none of the others."
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
