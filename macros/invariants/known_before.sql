{% macro known_before(events, checked) -%}
    {#-
        The events before the range of a verification that one of the range could repeat: known_events_select, filled in.

        Arguments:
            events: relation, the event log
            checked: the verification
    -#}
    {%- set any_news = checked["news_from"] and checked["events_after"] | int >= 0 -%}
    {%- if any_news -%}
        {{ delta_outbox.known_events_select(events)
            | replace("__any_news__", "true")
            | replace("__events_to__", checked["events_to"] | string)
            | replace("__events_after__", checked["events_after"] | string)
            | replace("__news_from__", "date'" ~ checked["news_from"] ~ "'")
            | replace("__news_to__", "date'" ~ checked["news_to"] ~ "'") }}
    {%- else -%}
        select event_id from {{ events }} where false
    {%- endif -%}
{%- endmacro %}
