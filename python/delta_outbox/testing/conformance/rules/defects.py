"""What relays somewhere get wrong."""

from __future__ import annotations

from typing import Final

from delta_outbox.testing.conformance.check import Level
from delta_outbox.testing.conformance.checks import (
    age,
    budget,
    content,
    ending,
    identity,
    lease,
    operators,
    order,
    race,
    tampering,
)
from delta_outbox.testing.conformance.rules.table import numbered

DEFECT = Level.DEFECT

DEFECTS: Final = numbered(
    "D",
    (
        DEFECT,
        "The expiry of a lease counts no attempt.",
        lease.an_expired_claim_counts_as_an_attempt,
    ),
    (DEFECT, "The expiry of a lease leaves no error.", lease.an_expired_claim_is_an_error),
    (
        DEFECT,
        "A worker of the same name acknowledges after its lease.",
        lease.a_stale_success_counts_for_nothing,
    ),
    (DEFECT, "A late answer changes what is over.", lease.a_late_answer_changes_nothing),
    (
        DEFECT,
        "Published, not acknowledged at shutdown: lost, or PUBLISHED on a guess.",
        ending.an_unanswered_event_is_sent_again,
    ),
    (
        DEFECT,
        "What a worker releases unsent waits like a failure.",
        ending.what_was_not_sent_is_eligible_at_once,
    ),
    (DEFECT, "A bad event stops its neighbours.", ending.a_bad_event_does_not_stop_its_neighbours),
    (DEFECT, "A key that fails stops other keys.", order.other_keys_go_on),
    (
        DEFECT,
        "A bad event drags its batch to DEAD.",
        lease.a_batch_does_not_die_of_its_worker,
        "Batches die with their worker max_crashes times; nobody in them is DEAD.",
    ),
    (DEFECT, "Exhausted events starve the queue.", budget.what_is_exhausted_starves_nobody),
    (DEFECT, "Events that back off starve the queue.", budget.what_backs_off_starves_nobody),
    (DEFECT, "More than the limit is claimed.", race.a_claim_keeps_to_the_limit),
    (
        DEFECT,
        "PENDING straight to DEAD, by an operator.",
        operators.a_killed_event_is_claimed_first,
    ),
    (DEFECT, "PENDING straight to DEAD, by age.", age.the_old_die_of_a_claim),
    (
        DEFECT,
        "CLAIMED to DEAD by an operator while a relay works.",
        operators.a_kill_waits_for_the_claim,
    ),
    (DEFECT, "metadata change delivery.", content.metadata_does_not_change_delivery),
    (DEFECT, "An id that is appended twice is delivered twice.", identity.an_id_is_delivered_once),
    (DEFECT, "UPDATE of a log goes unnoticed.", tampering.an_update_is_noticed),
    (DEFECT, "DELETE of a log goes unnoticed.", tampering.a_delete_is_noticed),
    (DEFECT, "MERGE into a log goes unnoticed.", tampering.a_merge_is_noticed),
    (DEFECT, "INSERT OVERWRITE of a log goes unnoticed.", tampering.an_overwrite_is_noticed),
    (DEFECT, "TRUNCATE of a log goes unnoticed.", tampering.a_truncate_is_noticed),
    (DEFECT, "A replay keeps published_at.", operators.a_replay_clears_published_at),
    (DEFECT, "A replay is not eligible.", operators.a_replay_makes_it_pending_and_eligible),
)
