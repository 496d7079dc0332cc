"""The rules of the store contract."""

from __future__ import annotations

from typing import Final

from delta_outbox.testing.conformance.checks import (
    budget,
    claiming,
    content,
    ending,
    identity,
    lease,
    order,
    race,
)
from delta_outbox.testing.conformance.rules.table import MAY, MUST, MUST_NOT, SHOULD, numbered

STORE_CONTRACT: Final = numbered(
    "S",
    # Responsibilities
    (
        MUST,
        "Events are persisted before they are eligible.",
        ending.what_is_persisted_survives_a_restart,
    ),
    (
        MUST,
        "There is a way to retrieve eligible events.",
        claiming.what_is_due_is_eligible_and_can_be_claimed,
    ),
    (MUST, "Events can be claimed.", claiming.an_event_is_claimed_before_it_is_sent),
    (MUST, "The transitions of the lifecycle are supported.", ending.success_makes_it_published),
    (MUST, "No event is lost once persisted.", ending.every_event_ends),
    # Persistence
    (MUST, "Events are durable before any attempt.", ending.what_is_persisted_survives_a_restart),
    (
        MUST,
        "An event is visible only when it was persisted with success.",
        identity.a_refused_append_leaves_nothing,
        "An append is whole: all of it or nothing.",
    ),
    (MUST, "Events can be retrieved until they are terminal.", ending.a_failed_event_is_retried),
    # Retrieval
    (
        MUST,
        "Eligible events are retrieved.",
        claiming.a_scheduled_event_is_eligible_when_its_time_has_come,
    ),
    (
        MUST,
        "Without available_at an event is eligible at once.",
        claiming.without_a_time_it_is_eligible_at_once,
    ),
    (MUST, "Retrieval takes a limit from its caller.", race.retrieval_keeps_to_the_limit),
    (
        MUST_NOT,
        "Never more than the limit is returned.",
        race.a_claim_keeps_to_the_limit,
        "At every layer, also under concurrency.",
    ),
    (
        MAY,
        "Retrieval has an order.",
        order.retrieval_follows_arrival,
        "Arrival; a limit cuts a prefix.",
    ),
    # Claiming
    (MUST, "Claiming is supported.", claiming.what_is_due_is_eligible_and_can_be_claimed),
    (MUST, "A claim is PENDING to CLAIMED.", claiming.the_claim_is_on_record),
    (MUST, "A claim sets claimed_at.", claiming.claimed_at_is_the_time_of_the_claim),
    (MUST, "Claiming is safe under concurrency.", race.an_event_has_one_claim_at_a_time),
    (MUST, "Concurrent claims lose no event.", race.a_race_loses_nothing),
    (MUST, "A second claim of an event is tolerated.", lease.a_late_answer_changes_nothing),
    # State updates
    (
        MUST,
        "State can be updated along the lifecycle.",
        ending.a_retry_belongs_to_the_same_lifecycle,
    ),
    (MUST, "Updates are valid transitions.", ending.only_listed_transitions_happen),
    (
        MUST,
        "An update is atomic for its event.",
        claiming.a_step_is_whole,
        "No look shows a part of a step.",
    ),
    (MUST, "An update is durable.", ending.what_is_persisted_survives_a_restart),
    (
        MUST_NOT,
        "An invalid transition does not occur.",
        ending.an_ended_claim_cannot_be_ended_again,
    ),
    # Retry
    (
        MUST,
        "An event becomes eligible again unless it is terminated.",
        budget.it_is_retried_until_then,
    ),
    (MAY, "A retry counts attempts.", budget.attempts_are_counted_to_the_end),
    (MAY, "A retry updates last_error.", budget.last_error_follows_each_failure),
    (MAY, "A retry updates available_at.", ending.a_failure_is_followed_by_a_pause),
    (
        MUST_NOT,
        "The store defines no retry policy unless that is specified.",
        budget.it_dies_exactly_when_the_store_says_so,
        "Policy is data (delivery policies), and what it says is what happens.",
    ),
    # Terminal states
    (MUST, "Terminal events can be inspected.", ending.terminal_events_can_be_inspected),
    (
        MUST_NOT,
        "Terminal events are not returned as eligible.",
        ending.terminal_events_are_not_eligible,
    ),
    # Concurrency
    (MUST, "The store is correct under concurrent access.", race.relays_work_at_once),
    (MUST, "Concurrent operations lose no event.", race.a_race_loses_nothing),
    (MUST, "Transitions stay valid under concurrency.", race.a_race_keeps_transitions_legal),
    (MUST, "Partial updates corrupt no state.", race.concurrent_ends_all_count),
    # Claim expiration
    (
        MAY,
        "Claims expire.",
        lease.a_claim_lasts_as_long_as_its_lease,
        "Not before their lease is over.",
    ),
    (
        MUST,
        "An expired claim lets the event be processed again.",
        lease.the_same_relay_may_claim_it_again,
    ),
    (
        MUST,
        "An expired claim makes the event eligible again.",
        lease.an_expired_claim_makes_it_eligible_again,
    ),
    # Ordering
    (
        MAY,
        "Retrieval knows about order.",
        order.a_failed_event_holds_its_key,
        "An event is eligible when every earlier one of its key is; DEAD lets the key go on.",
    ),
    (
        SHOULD,
        "Events of an ordering key are retrieved in order.",
        order.a_key_is_retrieved_in_order,
    ),
    (
        MAY,
        "Concurrent claims within a key are restricted.",
        order.a_key_in_work_is_taken_by_nobody_else,
    ),
    # Extensibility
    (
        MAY,
        "There is lease metadata.",
        claiming.claimed_by_is_set_while_claimed,
        "claimed_by, and a claim_id that endings name.",
    ),
    (
        MUST_NOT,
        "Extensions do not violate delivery semantics.",
        content.metadata_does_not_change_delivery,
    ),
    (
        MUST_NOT,
        "Extensions do not violate transitions.",
        lease.transitions_stay_legal_when_workers_die,
    ),
    (
        MUST_NOT,
        "Extensions do not violate guarantees of the lifecycle.",
        lease.a_batch_does_not_die_of_its_worker,
        "The crash budget never counts against an event that was not alone.",
    ),
)
