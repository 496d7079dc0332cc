{% macro workflow_event_problems(where, event_type, problems) -%}
    {#-
        What is wrong with the type of a domain event that a workflow ends with.

        Arguments:
            where: text, `workflow` or `workflow.task`
            event_type: text, may be empty
            problems: list, takes a sentence per problem
    -#}
    {%- if event_type.startswith("workflow:") -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, "event_type", "'" ~ event_type ~ "' cannot be the type of a domain event.",
            "Name the event; types that begin with 'workflow:' belong to tasks."
        ) -%}
    {%- endif -%}
{%- endmacro %}
