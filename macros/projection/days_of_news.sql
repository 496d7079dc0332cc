{% macro days_of_news(news) -%}
    {#-
        The days of the event log on which a new event may be known already, as the text of a condition on created_date: from some
        days before each day of the news to that day. Days of the news that lie far apart have ranges of their own, so that an
        event of the year 1 or 9999 does not ask for all days between.

        twin: python/delta_outbox/core/horizon.py::day_ranges

        Arguments:
            news: relation with created_date, the new events
        Result: a query of one text; `false` if there are no news
    -#}
    {%- set days = var("identity_horizon_days", 7) | int -%}
    {%- set between = "concat('created_date between date_from_unix_date(', {first} - " ~ days ~ ", ') and date_from_unix_date(', {last}, ')')" -%}
    {{ delta_outbox.ranges_of(news, "unix_date(created_date)", days + 31, between) }}
{%- endmacro %}
