{% macro workflow_identifier_problems(workflows, across, problems) -%}
    {#-
        Tasks whose identifiers can be the same text.

        twin: python/delta_outbox/railway/checks/between_workflows.py::meeting_identifiers

        Arguments:
            workflows: mapping, name to mapping of `workflow_problems`
            across: only pairs of different workflows
            problems: list, takes a sentence per problem
    -#}
    {%- set before = [] -%}
    {%- for name, workflow in workflows.items() -%}
        {%- for task, one in workflow["tasks"].items() -%}
            {%- set text = one["row"]["identifier"] -%}
            {%- set pieces = delta_outbox.workflow_template(text, {"workflow": name, "task": task})["pieces"] -%}
            {%- for other in before if not across or other["workflow"] != name -%}
                {%- if delta_outbox.workflow_templates_meet(pieces, other["pieces"]) -%}
                    {%- do delta_outbox.workflow_problem(
                        problems, name ~ "." ~ task, "identifiers_collide",
                        "its identifier '" ~ text ~ "' can be the same as that of " ~ other["workflow"] ~ "." ~ other["task"]
                        ~ ", '" ~ other["text"] ~ "'.",
                        "Let one begin with text of its own: an identifier belongs to one task."
                    ) -%}
                {%- endif -%}
            {%- endfor -%}
            {%- do before.append({"workflow": name, "task": task, "text": text, "pieces": pieces}) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}
