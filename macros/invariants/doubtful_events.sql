{% macro doubtful_events() -%}
    {#-
        The events of a range that are not as plain as almost all are. Nothing new came of a plain one and the projection shows it
        once; or it is new, and the projection shows it so; or it was new or untouched, a claim took it, the claim published it at
        the first attempt, and the projection shows just that. Of a plain event no rule of rows has anything to say.

        Values are compared by hashes of 64 bits, so that a row is small and none is sorted; an event is known by the hash of its
        id. Two events with one hash are doubtful.

        Columns: event_hash; is_hidden, whether it is new and no delivery that arrived by then shows it; is_outdated, whether the
            projection shows another end of it than the log.
    -#}
    {#- How many rows of each kind an event has: the digits of a sum. -#}
    {%- set one = {
        "new": 1, "claim": 10, "publication": 100, "untouched before": 1000, "other before": 10000,
        "untouched": 100000, "published": 1000000, "other": 10000000, "odd": 100000000,
    } -%}
    {%- set counts_from_zero = "lifecycle = 0 and publish_attempts = 0 and crashes = 0" -%}
    {%- set is_untouched = (
        "state = 'PENDING' and " ~ counts_from_zero ~ " and attempts = 0 and destination = '' and sequence = 0"
        ~ " and replayed_at is null and kill_command_id is null"
    ) -%}
    with seen as (
        select
            xxhash64(event_id) as event_hash,
            {{ one["new"] }} as kind,
            arrival,
            0 as claim,
            0 as place,
            xxhash64(event_type, ordering_key) as name,
            cast(null as bigint) as logged,
            cast(null as bigint) as shown
        from outbox_new_events
        union all
        select
            xxhash64(event_id) as event_hash,
            case
                when not ({{ counts_from_zero }} and attempt = 1) then {{ one["odd"] }}
                when from_state = 'PENDING' and to_state = 'CLAIMED' and reason = 'claimed'
                    then if(
                        claim_id is not null and relay_id is not null and lease_expires_at is not null,
                        {{ one["claim"] }},
                        {{ one["odd"] }}
                    )
                when from_state = 'CLAIMED' and to_state = 'PUBLISHED' and reason in ('delivered', 'completed')
                    then {{ one["publication"] }}
                else {{ one["odd"] }}
            end as kind,
            arrival,
            xxhash64(destination, claim_id, epoch) as claim,
            if(to_state = 'CLAIMED', 0, xxhash64(destination, epoch, lane, sequence)) as place,
            0 as name,
            sequence as logged,
            null as shown
        from outbox_new_transitions
        union all
        select
            xxhash64(event_id) as event_hash,
            if({{ is_untouched }}, {{ one["untouched before"] }}, {{ one["other before"] }}) as kind,
            arrival,
            0 as claim,
            0 as place,
            0 as name,
            null as logged,
            null as shown
        from outbox_open_before
        where state in ('PENDING', 'CLAIMED')
        union all
        select
            xxhash64(event_id) as event_hash,
            case
                when
                    {{ delta_outbox.wrong_time("claimed_at", "CLAIMED") | indent(20) }} is not null
                    or {{ delta_outbox.wrong_time("published_at", "PUBLISHED") | indent(20) }} is not null
                    or {{ delta_outbox.wrong_claim_fields() | indent(20) }} is not null
                    or ({{ delta_outbox.is_reserved("event_type") }} and lifecycle > 0)
                    then {{ one["odd"] }}
                when {{ is_untouched }} then {{ one["untouched"] }}
                when state = 'PUBLISHED' and {{ counts_from_zero }} and attempts = 1 then {{ one["published"] }}
                else {{ one["other"] }}
            end as kind,
            arrival,
            0 as claim,
            if(state = 'PUBLISHED', xxhash64(destination, epoch, lane, sequence), 0) as place,
            xxhash64(event_type, ordering_key) as name,
            null as logged,
            sequence as shown
        from outbox_touched_deliveries
    ),

    events as (
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
        from (select * from seen distribute by event_hash)
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
