{% macro extended_tasks() -%}
    {#-
        When tasks expire that operators let expire later. Whether it counts for an item is said by its claim, while it is open.

        Columns: event_id, arrival, extended_to.
    -#}
    select
        c.event_id,
        c.arrival,
        max({{ delta_outbox.end_after("c") }}) as extended_to
    from {{ source("outbox", "outbox_commands") }} as c
    where c.kind = 'extend'
    group by c.event_id, c.arrival
{%- endmacro %}
