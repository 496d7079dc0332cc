{% macro extended_tasks() -%}
    {#-
        When tasks expire that operators let expire later. Whether it counts for an item is said by its claim, while it is open.

        Columns: event_id, arrival, extended_to.
    -#}
    select
        event_id,
        arrival,
        max(try_cast(get_json_object(arguments, '$.until') as timestamp)) as extended_to
    from {{ source("outbox", "outbox_commands") }}
    where kind = 'extend'
    group by event_id, arrival
{%- endmacro %}
