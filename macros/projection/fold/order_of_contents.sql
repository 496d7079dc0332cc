{% macro order_of_contents(alias=none) -%}
    {#- `order_of_copies` to the end, for whoever reads the log itself: payload and headers come last. -#}
    {%- set of = alias ~ "." if alias else "" -%}
    {{ delta_outbox.order_of_copies(alias) }}, {{ of }}payload, to_json({{ of }}headers)
{%- endmacro %}
