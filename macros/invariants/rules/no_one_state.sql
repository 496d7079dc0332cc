{% macro no_one_state(states, least_destination) -%}
    {#-
        What is wrong where the projection shows a delivery more than once, or an event also as one that was never claimed.

        Arguments:
            states: how many rows the delivery has
            least_destination: the first destination of the event, '' for one that was never claimed
    -#}
    case
        when {{ states }} > 1 then 'a delivery in more than one state'
        when {{ least_destination }} = '' and destination <> '' then 'a delivery of an event that was never claimed'
    end
{%- endmacro %}
