{% macro workflow_template(text, known={}) -%}
    {#-
        Take a template such as `refund-{order_id}` apart.

        twin: python/delta_outbox/railway/identifiers.py::Template

        Arguments:
            text: the template
            known: mapping, fields whose value is fixed
        Result: a mapping: `problem` (text or none), `fields` (the names in braces), `pieces` (the texts before, between and
            after the fields).
    -#}
    {%- set fields, pieces = [], [""] -%}
    {%- for brace, name, char in modules.re.findall("(\\{\\{|\\}\\})|\\{([^\\W\\d]\\w*)\\}|([\\s\\S])", text) -%}
        {%- if name and name not in known -%}
            {%- do pieces.append("") -%}
        {%- else -%}
            {%- do pieces.append(pieces.pop() ~ (known[name] if name else brace[:1] or char)) -%}
        {%- endif -%}
        {%- if name -%} {%- do fields.append(name) -%} {%- endif -%}
    {%- endfor -%}
    {%- set form = "(?:[^{}]|\\{\\{|\\}\\}|\\{[^\\W\\d]\\w*\\})*" -%}
    {%- if not text.strip() -%}
        {%- set problem = "it is empty" -%}
    {%- elif not modules.re.fullmatch(form, text) -%}
        {%- set problem = "its braces do not hold the names of fields" -%}
    {%- else -%}
        {%- set problem = none -%}
    {%- endif -%}
    {{- return({"problem": problem, "fields": fields, "pieces": pieces}) -}}
{%- endmacro %}
