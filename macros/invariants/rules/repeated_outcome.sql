{% macro repeated_outcome(first_arrival, least_destination) -%}
    {#-
        What is wrong where a task can have another outcome than its first: it was replayed, or is delivered twice.

        Arguments:
            first_arrival: of the rows of its identifier
            least_destination: the first destination of the event
    -#}
    case
        when not {{ delta_outbox.is_reserved("event_type") }} then null
        when lifecycle > 0 then 'a task that was replayed'
        when arrival > {{ first_arrival }} or {{ least_destination }} <> destination then 'a task with two deliveries'
    end
{%- endmacro %}
