"""The rules of the processing lifecycle."""

from __future__ import annotations

from typing import Final

from delta_outbox.testing.conformance.checks import (
    age,
    budget,
    claiming,
    ending,
    lease,
    operators,
    race,
)
from delta_outbox.testing.conformance.checks import order as order_
from delta_outbox.testing.conformance.rules.table import MAY, MUST, MUST_NOT, SHOULD, numbered

LIFECYCLE: Final = numbered(
    "L",
    (
        MUST_NOT,
        "Only the six listed transitions happen.",
        ending.only_listed_transitions_happen,
        "Each is on record; a second answer for an ended claim is void.",
    ),
    # PENDING to CLAIMED
    (
        MUST,
        "An event is claimed before it is processed.",
        claiming.an_event_is_claimed_before_it_is_sent,
    ),
    (MUST, "A claim sets claimed_at to its time.", claiming.claimed_at_is_the_time_of_the_claim),
    (SHOULD, "A claim sets claimed_by to the relay.", claiming.claimed_by_names_the_relay),
    (
        MUST_NOT,
        "What is not eligible is not claimed, such as an event that is due later.",
        claiming.nothing_is_claimed_before_its_time,
        "available_at <= now is due.",
    ),
    # CLAIMED to PUBLISHED
    (MUST, "Success of the publisher makes it PUBLISHED.", ending.success_makes_it_published),
    (MUST, "Success sets published_at.", ending.published_at_is_the_time_of_the_success),
    # CLAIMED to PENDING
    (
        MUST,
        "After a failure the event stays eligible for a retry.",
        ending.a_failed_event_is_retried,
    ),
    (
        MUST,
        "On the way back to PENDING attempts goes up.",
        ending.attempts_are_one_more_after_a_failed_attempt,
        "The claim gives the number, so that it is up before the attempt and after it.",
    ),
    (
        SHOULD,
        "On the way back to PENDING last_error is updated.",
        ending.a_failure_is_kept_as_last_error,
    ),
    (
        MAY,
        "A retry is scheduled by available_at.",
        ending.a_failure_is_followed_by_a_pause,
        "Back-off by policy; what was never sent waits for nothing.",
    ),
    (
        MUST,
        "On the way back to PENDING claimed_at is cleared.",
        claiming.claimed_at_is_cleared_on_the_way_back,
    ),
    (
        MUST,
        "On the way back to PENDING claimed_by is cleared.",
        claiming.claimed_by_is_cleared_on_the_way_back,
    ),
    (MAY, "An expired claim lets another relay have the event.", lease.another_relay_may_claim_it),
    # CLAIMED to DEAD
    (
        MUST,
        "A termination condition makes it DEAD.",
        ending.a_termination_condition_makes_it_dead,
        "From CLAIMED: what is to die is claimed first.",
    ),
    (MUST_NOT, "A DEAD event is not retried automatically.", ending.a_dead_event_is_not_retried),
    (MUST, "At death claimed_at is cleared.", claiming.claimed_at_is_cleared_at_death),
    (MUST, "At death claimed_by is cleared.", claiming.claimed_by_is_cleared_at_death),
    # Replay
    (
        MAY,
        "A replay resets attempts.",
        operators.a_replay_starts_counting_anew,
        "A replay is a new lifecycle: attempts from 0; last_error stays until the next failure.",
    ),
    # Claiming
    (MUST, "Processing without a claim does not happen.", claiming.the_claim_is_on_record),
    (MAY, "Several relays work on one outbox.", claiming.several_relays_take_turns),
    (
        MUST,
        "An event may be claimed again after a failure or an expired claim: assume it.",
        lease.it_may_be_sent_more_than_once,
        "At least once.",
    ),
    (
        MAY,
        "Double claims are prevented within documented limits.",
        race.an_event_has_one_claim_at_a_time,
        "One live claim per event, also in a race; a lease that is over ends it.",
    ),
    # Retry
    (
        MUST,
        "A failed attempt is retried until a termination condition is met.",
        budget.it_is_retried_until_then,
    ),
    (
        MUST,
        "Termination conditions are defined.",
        budget.it_dies_exactly_when_the_store_says_so,
        "Attempts that failed or had no answer, against max_attempts of the policy.",
    ),
    (MAY, "The number of attempts terminates.", budget.it_dies_of_its_last_attempt),
    (
        MAY,
        "Time terminates.",
        age.it_dies_of_its_age,
        "expires_after_seconds, from arrival, available_at or the last replay, whatever is latest.",
    ),
    (MAY, "An operator terminates.", operators.a_killed_event_ends_dead),
    (
        MAY,
        "Policies of the implementation terminate.",
        lease.what_kills_its_worker_every_time_dies,
        "A budget of its own for crashes; it counts only against an event that was alone.",
    ),
    (
        MUST,
        "When a termination condition is met the event is DEAD.",
        budget.the_exhausted_die_of_a_claim,
    ),
    # Terminal states
    (
        MUST_NOT,
        "A terminal state is not left automatically.",
        ending.a_terminal_state_is_left_by_no_time,
    ),
    (
        MAY,
        "A terminal state is left by a replay only.",
        operators.only_a_replay_leaves_a_terminal_state,
    ),
    # Concurrency
    (MAY, "Several relays process events at once.", race.relays_work_at_once),
    (MAY, "An event is processed more than once.", lease.a_crash_loses_nothing),
    (
        SHOULD,
        "A relay verifies its claim before it makes the event PUBLISHED.",
        lease.a_stale_success_counts_for_nothing,
        "An ending names the claim that it ends; the name of a worker is no proof.",
    ),
    (MAY, "Claims conflict.", race.a_claim_keeps_to_the_limit, "Whoever is late decides again."),
    (
        MAY,
        "Order restricts concurrency within its key.",
        order_.a_key_in_work_is_taken_by_nobody_else,
        "A key is in the hands of one relay at a time.",
    ),
    (MUST, "The system stays correct under concurrency.", race.a_race_keeps_transitions_legal),
    # Failures
    (
        MUST,
        "It stays correct if a relay crashes after its claim.",
        lease.an_expired_claim_makes_it_eligible_again,
    ),
    (
        MUST,
        "It stays correct if a relay crashes after publishing, before the update.",
        lease.it_may_be_sent_more_than_once,
    ),
    (MUST, "It stays correct if an event is claimed twice.", lease.a_late_answer_changes_nothing),
    (
        MUST,
        "It stays correct if an attempt fails in part.",
        ending.a_bad_event_does_not_stop_its_neighbours,
        "Each event of a batch has an ending of its own.",
    ),
    (
        MUST,
        "Delivery semantics are preserved through failures.",
        ending.only_success_makes_it_published,
        "PUBLISHED only by a positive answer for that very event.",
    ),
    (MUST, "No event is lost once persisted.", ending.every_event_ends),
)
