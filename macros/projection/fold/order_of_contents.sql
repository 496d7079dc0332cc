{% macro order_of_contents(alias) -%}
    {#- `order_of_copies` to the end, for whoever reads the log itself: payload and headers come last. -#}
    {{ delta_outbox.order_of_copies(alias) }}, {{ alias }}.payload, to_json({{ alias }}.headers)
{%- endmacro %}
