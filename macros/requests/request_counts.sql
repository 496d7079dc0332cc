{% macro request_counts(targets) -%}
    {#- How many deliveries a request gets, by state, event type and destination. Argument: relation, request_targets. -#}
    select
        state,
        event_type,
        destination,
        count(*) as deliveries
    from {{ targets }}
    where refusal is null
    group by state, event_type, destination
    order by deliveries desc, state, event_type, destination
{%- endmacro %}
