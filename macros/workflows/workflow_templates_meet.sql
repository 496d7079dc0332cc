{% macro workflow_templates_meet(one, other) -%}
    {#-
        Say whether two templates can make the same text.

        twin: python/delta_outbox/railway/identifiers.py::can_meet

        Arguments:
            one, other: lists, the pieces of `workflow_template`
    -#}
    {%- for text, pieces in [(one, other), (other, one)] if text | length == 1 -%}
        {%- set escaped = [] -%}
        {%- for piece in pieces -%} {%- do escaped.append(modules.re.escape(piece)) -%} {%- endfor -%}
        {{- return(modules.re.fullmatch(escaped | join("[\\s\\S]*"), text[0]) is not none) -}}
    {%- endfor -%}
    {{- return(
        (one[0].startswith(other[0]) or other[0].startswith(one[0]))
        and (one[-1].endswith(other[-1]) or other[-1].endswith(one[-1]))
    ) -}}
{%- endmacro %}
