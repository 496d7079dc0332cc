{% macro workflow_template_problems(what, text, known, where, problems) -%}
    {#-
        What is wrong with a template.

        Arguments:
            what: name of its column
            text: the template
            known: list, fields that it may use
            where: text, whose it is
            problems: list, takes a sentence per problem
    -#}
    {%- set template = delta_outbox.workflow_template(text) -%}
    {%- set unknown = [] -%}
    {%- for field in template["fields"] | sort(case_sensitive=true) if field not in known and field not in unknown -%}
        {%- do unknown.append(field) -%}
    {%- endfor -%}
    {%- if template["problem"] -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, what ~ "_malformed", what ~ " '" ~ text ~ "': " ~ template["problem"] ~ ".",
            "Write text with fields in braces, such as 'refund-{order_id}'."
        ) -%}
    {%- elif unknown -%}
        {%- do delta_outbox.workflow_problem(
            problems, where, what ~ "_unknown_field",
            what ~ " '" ~ text ~ "' uses " ~ unknown | join(", ") ~ ", which the start event does not have.",
            "It has " ~ known | sort(case_sensitive=true) | join(", ") ~ "."
        ) -%}
    {%- endif -%}
{%- endmacro %}
