{% macro refresh_news() -%}
    {#-
        A part of `refresh_script`: where an earlier event may have the id of a new one, as `known_events_select` is told.
        A rebuild holds its events against none.
    -#}
    set (news_days, first_id, last_id) = (select 'false', '', '');
    if events_to > events_after and not plan_rebuilds then
        execute immediate tails || r"
            select
                ({{ delta_outbox.days_of_news("outbox_events_tail") | indent(16) }}),
                coalesce(hex(min(event_id)), ''),
                coalesce(hex(max(event_id)), '')
            from outbox_events_tail"
        into news_days, first_id, last_id;
    end if;
{%- endmacro %}
