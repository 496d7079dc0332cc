{% macro order_of_contents(alias) -%}
    {#- The order of the rows of one event_id within one commit, content last (see order_of_copies). -#}
    {{ alias }}.ordinal asc nulls last, {{ alias }}.created_at, {{ alias }}.event_type, {{ alias }}.ordering_key,
    {{ alias }}.partition_key, {{ alias }}.available_at, {{ alias }}.payload, to_json({{ alias }}.headers)
{%- endmacro %}
