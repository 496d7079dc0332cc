{% macro refuse_argument(name, rule, value, problems) -%}
    {#- Keep what is wrong with an argument: what, the rule, what came. -#}
    {%- set came = "nothing" if value is none else delta_outbox.shown(value | string) -%}
    {%- do problems.append("`" ~ name ~ "` " ~ rule ~ ". Got: " ~ came) -%}
{%- endmacro %}
