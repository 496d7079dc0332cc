{% macro workflow_reach(first, follows) -%}
    {#-
        List all that can come after a node; the node itself only if it lies on a loop.

        Arguments:
            first: name of the node
            follows: mapping, node to a list of nodes
    -#}
    {%- set found = [] -%}
    {%- for one in follows.get(first, []) -%}
        {%- if one not in found -%} {%- do found.append(one) -%} {%- endif -%}
    {%- endfor -%}
    {#- The list grows while it is read. -#}
    {%- for one in found -%}
        {%- for other in follows.get(one, []) -%}
            {%- if other not in found -%} {%- do found.append(other) -%} {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
