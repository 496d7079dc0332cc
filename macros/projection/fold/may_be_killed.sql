{% macro may_be_killed() -%}
    {#- A condition on a delivery: a kill has an effect, or keeps it. It is open, or DEAD by anything but an operator, so that it may hold its key. -#}
    (state in ('PENDING', 'CLAIMED') or (state = 'DEAD' and reason <> 'operator'))
{%- endmacro %}
