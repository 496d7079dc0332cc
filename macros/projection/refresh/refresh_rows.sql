{% macro refresh_rows(state) -%}
    {#-
        A part of `refresh_script`: write the rows of the plan. Where somebody was faster, Delta skips them.

        A MERGE has no options, so rows that change are replaced: together with all that the projection has of the same
        commits and states, by a condition that the new ones fulfil as well, as Delta demands.

        Arguments:
            state: relation, the projection
    -#}
    {%- set statement -%}
        r"insert into {{ state }}
        {{ delta_outbox.numbered_write("outbox/projection", "__number__", "outbox/projection/__number__") | indent(8) }}
        replace where __replacing__
        __tails__,

        outbox_known_events as (
            {{ delta_outbox.known_events_select(source("outbox", "outbox_events")) | indent(12) }}
        )

        select {{ delta_outbox.state_columns() | join(", ") }} from (__fold__)"
    {%- endset -%}
    {{ delta_outbox.refresh_attempt(statement, {
        "any_news": "if(news_days = 'false', 'false', 'true')",
        "events_to": "cast(events_to as string)",
        "events_after": "cast(events_after as string)",
        "news_days": "news_days",
        "first_id": "'string(x\\'' || first_id || '\\')'",
        "last_id": "'string(x\\'' || last_id || '\\')'",
        "number": "cast(plan_number as string)",
        "tails": "tails",
        "fold": "if(is_empty, r\"select * from " ~ state ~ " where false\", fold_text)",
        "touched": "touched",
        "with_untouched": "'true'",
        "replacing": "if(plan_rebuilds, 'true', concat_ws(' or ', 'arrival > ' || events_after, nullif(touched, 'false')))",
    }) }}
    if not lost then
        set applied = plan_number;
    end if;
{%- endmacro %}
