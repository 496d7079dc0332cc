{% macro broken_by_deliveries() -%}
    {#- The violations that one row of the projection shows. -#}
    with counted as (
        select
            *,
            count(*) over (partition by event_id, arrival, destination) as states,
            min(destination) over (partition by event_id, arrival) as least_destination,
            min(arrival) over (partition by event_id) as first_arrival
        from outbox_checked_deliveries
    ),

    broken as (
        select
            *,
            inline({{ delta_outbox.judged([
                ("wrong_claimed_at", delta_outbox.wrong_time("claimed_at", "CLAIMED")),
                ("wrong_published_at", delta_outbox.wrong_time("published_at", "PUBLISHED")),
                ("incomplete_claims", delta_outbox.wrong_claim_fields()),
                ("lost_events", delta_outbox.no_one_state("states", "least_destination")),
                ("repeated_outcomes", delta_outbox.repeated_outcome("first_arrival", "least_destination")),
                (
                    "false_identities",
                    "case when arrival > first_arrival then 'a later copy of the event became a delivery' end"
                ),
            ]) | indent(12) }})
        from counted
    )

    select
        {{ delta_outbox.violation(
            {
                "invariant": "invariant", "problem": "problem", "event_id": "event_id", "arrival": "arrival", "destination": "destination",
                "epoch": "epoch", "lane": "lane", "sequence": "sequence", "occurred_at": "changed_at",
            },
            details={
                "state": "state",
                "claimed_at": "cast(claimed_at as string)",
                "claimed_by": "claimed_by",
                "claim_id": "claim_id",
                "published_at": "cast(published_at as string)",
                "first_arrival": "if(arrival > first_arrival, cast(first_arrival as string), null)",
            },
        ) }}
    from broken
{%- endmacro %}
