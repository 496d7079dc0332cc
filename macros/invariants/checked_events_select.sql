{% macro checked_events_select(events, checked) -%}
    {#-
        The rows of the event log in the range of a verification, and which of them are events.

        Arguments:
            events: relation, the event log
            checked: the verification
    -#}
    with news as (
        {{ delta_outbox.events_tail_select(
                delta_outbox.rows_in_range(events, checked["events_after"] | int, checked["events_to"] | int), "_commit_version"
            ) | indent(4) }}
    ),

    known as (
        select distinct event_id from (
            {{ delta_outbox.known_before(events, checked) | indent(8) }}
        )
    ),

    copies as (
        select
            *,
            row_number() over same_id as copy,
            min(arrival) over (partition by event_id) as first_arrival
        from news
        window same_id as (partition by event_id order by {{ delta_outbox.order_of_copies() }})
    ),

    final as (
        select
            copies.event_id,
            copies.arrival,
            copies.event_type,
            copies.ordering_key,
            copies.created_at,
            copies.copy = 1 and known.event_id is null as is_event,
            copies.arrival > copies.first_arrival or known.event_id is not null as arrived_later
        from copies
        left join known on copies.event_id = known.event_id
    )

    select * from final
{%- endmacro %}
