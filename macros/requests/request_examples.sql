{% macro request_examples(targets) -%}
    {#-
        A few deliveries of a request, and what it does not get. Argument: relation, request_targets.
    -#}
    {%- set columns -%}
        event_id,
        destination,
        state,
        event_type,
        ordering_key,
        date_format(created_at, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'") as created_at,
        last_error,
        refusal,
        arrival
    {%- endset -%}
    with some_targets as (
        select {{ columns }}
        from {{ targets }}
        where refusal is null
        order by arrival, event_id, destination
        limit 10
    ),

    some_refused as (
        select {{ columns }}
        from {{ targets }}
        where refusal is not null
        order by arrival, event_id, destination
        limit 50
    )

    select *
    from (
        select * from some_targets
        union all
        select * from some_refused
    )
    order by refusal is not null, arrival, event_id, destination
{%- endmacro %}
