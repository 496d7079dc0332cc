{% macro broken_by_transitions() -%}
    {#- The violations that one transition shows, beside where its delivery stood before it and what the projection shows now. -#}
    with joined as (
        select /*+ merge(c, d) */
            t.*,
            c.command_id is not null as asked_for,
            d.event_id is not null as is_known,
            coalesce(
                t.to_state = d.state
                and t.lifecycle = d.lifecycle
                and t.attempt = d.attempts
                and t.epoch = d.epoch
                and t.lane = d.lane
                and t.sequence = d.sequence,
                false
            ) as is_shown
        from outbox_checked_transitions as t
        left join outbox_checked_commands as c
            on
                t.command_id = c.command_id
                and t.event_id = c.event_id
                and t.arrival = c.arrival
                and c.kind = if(t.reason = 'replayed', 'replay', 'kill')
        left join outbox_checked_deliveries as d
            on
                t.event_id = d.event_id
                and t.arrival = d.arrival
                and t.destination = d.destination
    ),

    broken as (
        select
            *,
            inline({{ delta_outbox.judged([
                ("illegal_transitions", delta_outbox.illegal_transition()),
                ("broken_sequences", delta_outbox.repeated_delivery()),
                ("double_claims", delta_outbox.double_claim()),
                ("incomplete_claims", delta_outbox.incomplete_claim()),
                ("miscounted_attempts", delta_outbox.miscounted_attempt()),
                ("endings_of_other_claims", delta_outbox.ending_of_other_claim()),
                ("unexplained_replays", delta_outbox.unexplained_replay("asked_for")),
                ("false_identities", delta_outbox.false_identity("is_known")),
                (
                    "lost_events",
                    "case when is_last and not is_shown then 'the projection does not show what the log says last' end"
                ),
            ]) | indent(12) }})
        from joined
    )

    select
        {{ delta_outbox.violation(
            {
                "invariant": "invariant", "problem": "problem", "event_id": "event_id", "arrival": "arrival", "destination": "destination",
                "epoch": "epoch", "lane": "lane", "sequence": "sequence", "occurred_at": "occurred_at",
            },
            details={
                "from_state": "from_state",
                "to_state": "to_state",
                "reason": "reason",
                "attempt": "cast(attempt as string)",
                "lifecycle": "cast(lifecycle as string)",
                "claim_id": "claim_id",
                "relay_id": "relay_id",
                "actor": "actor",
                "command_id": "command_id",
                "previous_state": "previous.state",
                "previous_attempt": "cast(previous.attempt as string)",
                "previous_lifecycle": "cast(previous.lifecycle as string)",
                "previous_claim_id": "previous.claim_id",
            },
        ) }}
    from broken
{%- endmacro %}
