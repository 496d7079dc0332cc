{% macro doubtful_events() -%}
    {#-
        The events of a range that are not as plain as almost all are. Nothing new came of a plain one and the projection shows it
        once; or it is new, and the projection shows it so; or it was new or untouched, a claim took it, the claim published it at
        the first attempt, and the projection shows just that. Of a plain event no rule of rows has anything to say.

        Values are compared by hashes of 64 bits, so that a row is small and none is sorted; an event is known by the hash of its
        id. Two plain events with one hash are doubtful.

        Columns: event_hash; is_hidden, whether it is new and no delivery that arrived by then shows it; is_outdated, whether the
            projection shows another end of it than the log.
    -#}
    {#- How many rows of each kind an event has: the digits of a sum. -#}
    {%- set one = {
        "new": 1, "claim": 10, "publication": 100, "untouched before": 1000, "other before": 10000,
        "untouched": 100000, "published": 1000000, "other": 10000000, "odd": 100000000,
    } -%}
    with events as (
        select
            event_hash,
            count(*) as rows,
            sum(kind) as kinds,
            min(arrival) as first_arrival,
            max(arrival) as last_arrival,
            bit_xor(claim) as claim,
            bit_xor(place) as place,
            bit_xor(name) as name,
            min(logged) as first_logged,
            max(logged) as last_logged,
            max(shown) as shown,
            min(if(kind = {{ one["new"] }}, arrival, null)) as new_arrival,
            min(if(shown is null, null, arrival)) as shown_arrival
        -- Brought together first: rows of one event are in different files, and counted before they would hardly get fewer.
        from (
            select * from ({{ delta_outbox.rows_by_kind(one) | indent(12) }})
            distribute by event_hash
        )
        group by event_hash
    ),

    judged as (
        select
            event_hash,
            coalesce(new_arrival < shown_arrival, new_arrival is not null) as is_hidden,
            coalesce(last_logged <> shown, false) as is_outdated,
            case kinds
                {%- for before in (0, one["untouched before"], one["other before"]) %}
                {%- for now in (one["untouched"], one["published"], one["other"]) %}
                when {{ before + now }} then rows = {{ 2 if before else 1 }}
                {%- endfor %}
                {%- endfor %}
                when {{ one["new"] + one["untouched"] }} then rows = 2 and name = 0
                {%- for before in (one["new"], one["untouched before"]) %}
                when {{ before + one["claim"] + one["publication"] + one["published"] }}
                    then rows = 4 and claim = 0 and place = 0 and first_logged < last_logged and last_logged = shown
                    {%- if before == one["new"] %} and name = 0 {%- endif %}
                {%- endfor %}
                else false
            end
            and first_arrival = last_arrival as is_plain
        from events
    )

    select
        event_hash,
        is_hidden,
        is_outdated
    from judged
    where not is_plain
{%- endmacro %}
