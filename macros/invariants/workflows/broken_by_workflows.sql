{% macro broken_by_workflows(range) -%}
    {#-
        What breaks a rule of workflows; nothing is asked as long as none were put into force.

        Arguments:
            range: the mapping of `invariant_range`
    -#}
    {%- if range.get("workflows") -%}
    union all
    select * from ({{ delta_outbox.broken_by_follow_ups(range["workflows"]) }})
    union all
    select * from ({{ delta_outbox.broken_by_attempts() }})
    union all
    select * from ({{ delta_outbox.broken_by_stranding(range["workflows"]) }})
    {%- endif -%}
{%- endmacro %}
