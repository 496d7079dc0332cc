{% macro is_due(now) -%}
    {#- A condition on a PENDING delivery: it need not wait for a time. Argument: SQL expression, the time of the question. -#}
    coalesce(available_at <= {{ now }}, true)
{%- endmacro %}
