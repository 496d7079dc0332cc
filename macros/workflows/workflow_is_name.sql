{% macro workflow_is_name(text) -%}
    {#- Whether a text is lower-case words joined by `_`, as the names of workflows, tasks, outcomes and third parties are. -#}
    {{- return(modules.re.fullmatch("[a-z][a-z0-9]*(?:_[a-z0-9]+)*", text) is not none) -}}
{%- endmacro %}
