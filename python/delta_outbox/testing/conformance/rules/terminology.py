"""The rules among the terms."""

from __future__ import annotations

from typing import Final

from delta_outbox.testing.conformance.checks import (
    budget,
    claiming,
    content,
    ending,
    identity,
    lease,
    operators,
    order,
    race,
)
from delta_outbox.testing.conformance.rules.table import MAY, MUST, MUST_NOT, SHOULD, numbered

TERMINOLOGY: Final = numbered(
    "T",
    (
        MUST,
        "The application gives unique ids.",
        identity.the_first_content_stays,
        "If it does not, the first content stays.",
    ),
    (
        MUST,
        "The application writes the event and its own change in one transaction.",
        "The transaction is the application's, not the store's.",
    ),
    (
        MUST,
        "An event is persisted before any attempt.",
        ending.what_is_persisted_survives_a_restart,
    ),
    # Relay
    (MUST, "A relay reads eligible events.", claiming.what_is_due_is_eligible_and_can_be_claimed),
    (MUST, "A relay claims them.", claiming.an_event_is_claimed_before_it_is_sent),
    (MUST, "A relay publishes them by a publisher.", content.any_bytes_are_delivered_as_they_are),
    (MUST, "A relay updates state by the outcome.", ending.a_termination_condition_makes_it_dead),
    (MAY, "Several relays work at once.", race.relays_work_at_once),
    # Lease
    (
        MUST,
        "After its lease an event is eligible again.",
        lease.an_expired_claim_makes_it_eligible_again,
        "A relay ends another's claim only with proof that its time is over.",
    ),
    (MAY, "The same relay or another one claims it then.", lease.the_same_relay_may_claim_it_again),
    (
        MUST,
        "Assume that an event may be processed more than once.",
        lease.it_may_be_sent_more_than_once,
    ),
    # Acknowledgement, idempotency, guarantee
    (
        MUST,
        "Only the publisher's success is an acknowledgement.",
        ending.only_success_makes_it_published,
        "Enqueued, flushed in part or timed out is unknown, and retried.",
    ),
    (
        SHOULD,
        "Consumers are idempotent.",
        "A rule for other people's software.",
    ),
    (
        SHOULD,
        "Consumers discard duplicates by event_id.",
        content.every_attempt_carries_the_same_identity,
        "Theirs to do; we see to it that every attempt carries the same id.",
    ),
    (SHOULD, "Delivery is at least once.", ending.an_unanswered_event_is_sent_again),
    (
        MUST,
        "Stronger guarantees document conditions, limits and failure modes.",
        "A rule for documents; see E-46.",
    ),
    # Replay, dead events, attempts
    (
        MUST,
        "A retry is automatic and of the same lifecycle.",
        ending.a_retry_belongs_to_the_same_lifecycle,
        "A definition, read as a rule.",
    ),
    (
        MUST,
        "A replay is explicit and begins a new lifecycle.",
        operators.a_replay_starts_counting_anew,
        "A definition, read as a rule.",
    ),
    (MAY, "A DEAD event is replayed.", operators.a_dead_event_can_be_replayed),
    (MAY, "Attempts are counted.", budget.attempts_are_counted_to_the_end),
    # Tracing, state, keys
    (
        SHOULD,
        "Trace contexts are propagated by headers or metadata.",
        content.trace_context_is_passed_through,
        "In headers it is passed through; in metadata it stays inside.",
    ),
    (MUST, "The state is one of the four.", ending.states_are_the_four),
    (
        MAY,
        "Events of a partition key go to the same partition.",
        content.the_key_reaches_the_publisher,
    ),
    (
        MUST_NOT,
        "A partition key defines no order.",
        order.a_partition_key_orders_nothing,
        "Stated without a keyword, read as a rule.",
    ),
    (
        MUST,
        "Events of an ordering key are processed in order.",
        order.a_key_is_sent_in_order,
        "Nothing of a key is sent before the result of its predecessor.",
    ),
    (
        MAY,
        "Order is guaranteed within an ordering key.",
        order.a_scheduled_event_holds_its_key,
        "Within it only: no global order.",
    ),
    (
        MUST,
        "When order is supported, its rules hold within the key.",
        order.a_failed_event_holds_its_key,
    ),
    # Operators
    (MAY, "Operators inspect.", operators.operators_can_inspect),
    (MAY, "Operators replay.", operators.a_published_event_can_be_replayed),
    (
        MAY,
        "Operators intervene.",
        operators.a_killed_event_is_hidden_at_once,
        "A kill hides the event at once.",
    ),
    # Termination
    (
        MUST,
        "When a termination condition is met the event is DEAD.",
        budget.it_dies_of_its_last_attempt,
    ),
    (
        MUST_NOT,
        "After that it is not retried automatically.",
        budget.what_is_exhausted_is_not_tried_again,
    ),
)
