{% macro may_be_touched(checked) -%}
    {#-
        A condition over the projection: the deliveries that the range of a verification can have touched. They are open,
        or they changed since; where a dead event may hold its key, the dead ones are looked at as well.

        Arguments:
            checked: the verification
    -#}
    {%- if checked["whole"] -%}
        true
    {%- else -%}
        (
            state in ('PENDING', 'CLAIMED'{{ ", 'DEAD'" if checked["any_hold"] }})
            {%- if checked["news_since"] %}
            or changed_at >= timestamp'{{ checked["news_since"] }}'
            {%- endif %}
        )
    {%- endif -%}
{%- endmacro %}
