{% macro rows_by_kind(one) -%}
    {#-
        The rows of a range by what they are, narrow and with hashes in place of values: a part of `doubtful_events`.

        Argument: mapping of kind to what one row of it adds to `kinds`.
        Columns: event_hash, kind, arrival; claim and place, whose hashes cancel out where a claim is ended by itself and the
            projection shows that end; name, the same for event type and key in log and projection; logged, shown: sequence of a
            transition, and of the last one that the projection shows.
    -#}
    {%- set counts_from_zero = "lifecycle = 0 and publish_attempts = 0 and crashes = 0" -%}
    {%- set is_untouched = (
        "state = 'PENDING' and " ~ counts_from_zero ~ " and attempts = 0 and destination = '' and sequence = 0"
        ~ " and replayed_at is null and kill_command_id is null"
    ) -%}
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
                {{ delta_outbox.wrong_time("claimed_at", "CLAIMED") | indent(16) }} is not null
                or {{ delta_outbox.wrong_time("published_at", "PUBLISHED") | indent(16) }} is not null
                or {{ delta_outbox.wrong_claim_fields() | indent(16) }} is not null
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
{%- endmacro %}
