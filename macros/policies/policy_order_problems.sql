{% macro policy_order_problems(globs, problems) -%}
    {#-
        What is wrong with the order of delivery policies: the first row that matches wins, and the last one matches all.

        Arguments:
            globs: list, the patterns in the order of the file
            problems: list, takes a sentence per problem
    -#}
    {%- set first = {} -%}
    {%- for glob in globs -%}
        {%- set winner = first.get("*", first.get(glob)) -%}
        {%- if winner is not none -%}
            {%- do problems.append(
                "row " ~ loop.index ~ " (" ~ delta_outbox.shown(glob) ~ "), column `event_type`: "
                ~ "must not repeat an earlier row or follow `*`; row " ~ winner ~ " always wins"
            ) -%}
        {%- endif -%}
        {%- do first.setdefault(glob, loop.index) -%}
    {%- endfor -%}
    {%- if not globs or globs[-1] != "*" -%}
        {%- set last = delta_outbox.shown(globs[-1]) if globs else "no rows" -%}
        {%- do problems.append("last row, column `event_type`: must be `*`. Got: " ~ last) -%}
    {%- endif -%}
{%- endmacro %}
