{% macro request_examples(targets, limit=10, limit_refused=50) -%}
    {#-
        A few deliveries of a request, and what it does not get. Arguments: relation, request_targets; rows of either kind.
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
        limit {{ limit }}
    ),

    some_refused as (
        select {{ columns }}
        from {{ targets }}
        where refusal is not null
        order by arrival, event_id, destination
        limit {{ limit_refused }}
    )

    select *
    from (
        select * from some_targets
        union all
        select * from some_refused
    )
    order by refusal is not null, arrival, event_id, destination
{%- endmacro %}
