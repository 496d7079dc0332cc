{% macro position() -%}
    {#-
        The place of an event in the total order: arrival, then ordinal (nulls last), created_at, event_id.

        twin: python/delta_outbox/lifecycle/claims.py::in_order
    -#}
    struct(arrival, coalesce(ordinal, 9223372036854775807) as ordinal, created_at, event_id)
{%- endmacro %}
