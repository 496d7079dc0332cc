{% macro known_events_select(events) -%}
    {#-
        The events that the projection has seen and that a new event could repeat: those within the identity horizon, from
        some days before the earliest of the news to its latest, and the last days. Beyond it the full audit reports second
        copies (docs/decisions/0004-identity-horizon.md).
        Placeholders, replaced by literals so that partitions are pruned:
            __any_news__: true or false, whether there are new events to hold against earlier ones
            __events_to__: the version up to which the news goes. A snapshot, because Spark confuses a table with its own
                change feed where one query reads both.
            __events_after__: the version of the event log up to which the projection has seen it
            __news_days__: the condition of `days_of_news`
            __first_id__, __last_id__: least and greatest id of the new events. Where ids grow with time, like UUIDs of
                version 7, hardly an earlier file has to be read.
    -#}
    {%- set days = var("identity_horizon_days", 7) | int -%}
    select event_id
    from {{ events }} version as of __events_to__
    where
        __any_news__
        and _metadata.row_commit_version <= __events_after__
        and event_id between __first_id__ and __last_id__
        and (
            (__news_days__)
            or created_date >= date_sub(current_date(), {{ days }})
        )
{%- endmacro %}
