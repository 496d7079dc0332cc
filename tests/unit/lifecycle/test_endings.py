"""The lifecycle: which transitions are legal, and how each claim ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from delta_outbox.lifecycle.endings import (
    MAX_RETRY_AFTER,
    Counters,
    Crashed,
    Ending,
    EndOfClaim,
    Expired,
    LeaseExpired,
    counters_at_claim,
    decide_ending,
    is_expired,
    suspect_claim_limit,
)
from delta_outbox.lifecycle.policy import DeliveryPolicy, task_policy
from delta_outbox.lifecycle.states import LEGAL_TRANSITIONS, OUTCOME_REASONS, REASONS, Reason, State
from delta_outbox.publishers import Delivered, Failed, NotSent, Rejected, Unknown

NOW = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
POLICY = DeliveryPolicy(event_type="*")
USED = Counters(attempt=5, publish_attempts=2, crashes=1, suspect=2)


def _end(
    result: EndOfClaim,
    counters: Counters = USED,
    *,
    claim_size: int = 100,
    policy: DeliveryPolicy = POLICY,
    age: float = 0,
) -> Ending:
    return decide_ending(
        counters=counters,
        result=result,
        claim_size=claim_size,
        policy=policy,
        now=NOW,
        started_at=NOW - timedelta(seconds=age),
        jitter=0.0,
    )


def test_the_legal_transitions_are_those_of_the_specification() -> None:
    """Six transitions are legal and no other, word for word as the specification lists them."""
    expected = {
        ("PENDING", "CLAIMED"),
        ("CLAIMED", "PUBLISHED"),
        ("CLAIMED", "PENDING"),
        ("CLAIMED", "DEAD"),
        ("PUBLISHED", "PENDING"),
        ("DEAD", "PENDING"),
    }
    assert expected == LEGAL_TRANSITIONS


def test_every_reason_has_its_place() -> None:
    """No reason stands outside the table, so a constraint made from it loses none."""
    assert set(Reason) == frozenset().union(*REASONS.values())


def test_only_plain_delivery_is_published_without_an_outcome() -> None:
    """What else leads to PUBLISHED is the ending of a workflow task, which has an outcome."""
    assert Reason.DELIVERED not in OUTCOME_REASONS
    assert REASONS[State.CLAIMED, State.PUBLISHED] == OUTCOME_REASONS | {Reason.DELIVERED}


def test_delivered_is_published() -> None:
    """An acknowledged event is PUBLISHED, with what the destination said, and no error."""
    expected = Ending(
        to_state=State.PUBLISHED,
        reason=Reason.DELIVERED,
        counters=replace(USED, suspect=0),
        receipt='{"offset":7,"partition":1}',
    )
    assert expected == _end(Delivered(receipt={"partition": 1, "offset": 7}))


def test_an_outcome_is_recorded_with_the_ending() -> None:
    """A task's outcome and its data stand on the very row that ends the claim."""
    ending = _end(Delivered(outcome="refunded", outcome_data={"amount": 3}))
    assert ("refunded", '{"amount":3}') == (ending.outcome, ending.outcome_data)
    assert (State.PUBLISHED, Reason.DELIVERED) == (ending.to_state, ending.reason)


def test_a_receipt_that_is_no_json_does_not_cost_the_delivery() -> None:
    """A publisher's odd receipt cannot turn a delivery into a second one."""
    ending = _end(Delivered(receipt=object(), outcome_data={1, 2}))
    assert ending.to_state is State.PUBLISHED
    assert ending.receipt == '"not JSON: object"'
    assert ending.outcome_data == '"not JSON: set"'


def test_delivered_late_is_delivered() -> None:
    """Age never turns a delivery into a dead letter."""
    policy = replace(POLICY, expires_after_seconds=60)
    assert _end(Delivered(), policy=policy, age=3600).to_state is State.PUBLISHED


@pytest.mark.parametrize(
    ("result", "reason", "error"),
    [
        (Failed(error="503"), Reason.FAILED, "503"),
        (Unknown(error="no answer"), Reason.UNKNOWN, "no answer"),
        (Unknown(), Reason.UNKNOWN, "unknown"),
    ],
)
def test_failed_and_unknown_wait_and_try_again(
    result: EndOfClaim, reason: Reason, error: str
) -> None:
    """Either answer counts once against max_attempts and backs off."""
    expected = Ending(
        to_state=State.PENDING,
        reason=reason,
        counters=replace(USED, publish_attempts=3, suspect=0),
        available_at=NOW + timedelta(seconds=4),
        error=error,
    )
    assert expected == _end(result)


@pytest.mark.parametrize("result", [Failed(error="503"), Unknown(error="no answer")])
def test_the_last_attempt_ends_dead(result: EndOfClaim) -> None:
    """The answer that reaches max_attempts ends the event, the one before does not."""
    last = Counters(attempt=30, publish_attempts=POLICY.max_attempts - 1)
    before = replace(last, publish_attempts=last.publish_attempts - 1)
    assert _end(result, before).to_state is State.PENDING
    ending = _end(result, last)
    assert (State.DEAD, Reason.EXHAUSTED) == (ending.to_state, ending.reason)
    assert ending.counters.publish_attempts == POLICY.max_attempts
    assert ending.available_at is None
    assert ending.error in {"503", "no answer"}


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [(None, 4), (0, 4), (3, 4), (60, 60), (1e300, MAX_RETRY_AFTER)],
)
def test_a_destination_may_ask_for_a_longer_wait(retry_after: float | None, seconds: float) -> None:
    """`retry_after` lengthens a back-off, never shortens it, and never parks an event for ever."""
    ending = _end(Failed(error="429", retry_after=retry_after))
    assert NOW + timedelta(seconds=seconds) == ending.available_at


def test_rejected_is_dead_and_costs_no_budget() -> None:
    """A permanent rejection is a dead letter at once; the budget counts failed and unknown only."""
    expected = Ending(
        to_state=State.DEAD,
        reason=Reason.REJECTED,
        counters=replace(USED, suspect=0),
        error="too large",
    )
    assert expected == _end(Rejected(error="too large"))


def test_not_sent_is_released_and_costs_nothing() -> None:
    """A clean release is eligible at once, in no budget, and keeps the last error."""
    expected = Ending(
        to_state=State.PENDING, reason=Reason.RELEASED, counters=replace(USED, suspect=0)
    )
    assert expected == _end(NotSent())


def test_a_release_is_never_a_dead_letter() -> None:
    """Nothing was tried, so neither age nor budget can end the event here."""
    policy = replace(POLICY, expires_after_seconds=60, max_attempts=1, max_crashes=1)
    assert _end(NotSent(), policy=policy, age=3600, claim_size=1).to_state is State.PENDING


@pytest.mark.parametrize(
    ("result", "reason", "error"),
    [
        (Crashed(), Reason.CRASHED, "crashed"),
        (Crashed(error="exit code 137"), Reason.CRASHED, "exit code 137"),
        (LeaseExpired(), Reason.LEASE_EXPIRED, "lease_expired"),
    ],
)
def test_a_crash_among_many_makes_suspect_and_costs_nothing(
    result: EndOfClaim, reason: Reason, error: str
) -> None:
    """One of many may be innocent: it is eligible at once and its crash budget is untouched."""
    expected = Ending(
        to_state=State.PENDING,
        reason=reason,
        counters=replace(USED, suspect=3),
        error=error,
    )
    assert expected == _end(result, claim_size=2)


@pytest.mark.parametrize("result", [Crashed(), LeaseExpired()])
def test_an_event_that_crashes_alone_pays(result: EndOfClaim) -> None:
    """Alone in its claim, an event counts its crashes and is DEAD at max_crashes."""
    first = _end(result, Counters(attempt=9, suspect=8), claim_size=1)
    assert (State.PENDING, 1, 9) == (
        first.to_state,
        first.counters.crashes,
        first.counters.suspect,
    )
    last = _end(result, replace(first.counters, crashes=2), claim_size=1)
    assert (State.DEAD, Reason.EXHAUSTED) == (last.to_state, last.reason)
    assert (3, 10) == (last.counters.crashes, last.counters.suspect)
    assert last.error in {"crashed", "lease_expired"}


@pytest.mark.parametrize("result", [Crashed(), LeaseExpired()])
def test_a_task_never_dies_of_crashes(result: EndOfClaim) -> None:
    """However often a task has crashed alone in its claim, it is tried again: its instance would
    go on by nothing.
    """
    policy = task_policy("workflow:orders/pay", "bank", lease_seconds=60)
    ending = _end(result, Counters(attempt=10**6, crashes=10**6), claim_size=1, policy=policy)
    assert (State.PENDING, 10**6 + 1) == (ending.to_state, ending.counters.crashes)


def test_an_innocent_event_never_dies_of_crashes() -> None:
    """However often others crash the claim, an event that was not alone stays alive."""
    counters = Counters(crashes=POLICY.max_crashes - 1)
    for _ in range(1000):
        ending = _end(Crashed(), counters_at_claim(counters), claim_size=2)
        assert ending.to_state is State.PENDING
        counters = ending.counters
    assert Counters(attempt=1000, crashes=2, suspect=1000) == counters


@pytest.mark.parametrize(
    "result", [Failed(error="x"), Unknown(), Crashed(), LeaseExpired()], ids=lambda r: type(r)
)
def test_an_old_event_does_not_go_back(result: EndOfClaim) -> None:
    """At exactly its age an event that would wait again is DEAD, with what went wrong."""
    policy = replace(POLICY, expires_after_seconds=60)
    assert _end(result, policy=policy, age=59.999_999).to_state is State.PENDING
    ending = _end(result, policy=policy, age=60)
    assert (State.DEAD, Reason.EXPIRED) == (ending.to_state, ending.reason)
    assert ending.error in {"x", "unknown", "crashed", "lease_expired"}
    assert ending.available_at is None


def test_an_exhausted_event_that_is_also_old_is_exhausted() -> None:
    """Where both budget and age end an event, the reason says what it died of."""
    policy = replace(POLICY, expires_after_seconds=60, max_attempts=1)
    assert _end(Failed(error="x"), policy=policy, age=60).reason is Reason.EXHAUSTED


def test_a_waiting_event_that_is_too_old_ends_without_an_attempt() -> None:
    """Claimed only to be ended: DEAD, expired, and in no budget."""
    expected = Ending(
        to_state=State.DEAD,
        reason=Reason.EXPIRED,
        counters=replace(USED, suspect=0),
        error="expired",
    )
    assert expected == _end(Expired())


def test_an_event_without_an_age_never_expires() -> None:
    """A blank `expires_after_seconds` means never, also after a century."""
    assert not is_expired(POLICY, started_at=NOW - timedelta(days=36_500), now=NOW)


def test_an_event_from_the_future_is_not_old() -> None:
    """An age that counts from a later instant (scheduled, skewed) has not begun."""
    policy = replace(POLICY, expires_after_seconds=1)
    last = datetime(9999, 12, 31, tzinfo=UTC)
    assert not is_expired(policy, started_at=last, now=NOW)


def test_a_claim_numbers_the_attempt_before_anything_is_sent() -> None:
    """A claim adds one to the attempt and touches no budget."""
    assert Counters(attempt=1) == counters_at_claim(Counters())
    assert replace(USED, attempt=6) == counters_at_claim(USED)


def test_an_error_is_one_printable_line() -> None:
    """What the log stores of a crash can be shown on a terminal and is short."""
    error = _end(Crashed(error="\x1b[31mboom\n" + "x" * 5000)).error
    assert error is not None
    assert error.isprintable()
    assert len(error) <= 1000


@pytest.mark.parametrize(
    ("suspect", "expected"), [(0, 10_000), (1, 5_000), (2, 2_500), (5, 313), (13, 2), (14, 1)]
)
def test_the_claim_of_a_suspect_halves(suspect: int, expected: int) -> None:
    """Each crash halves the company, rounded up, until the event is alone."""
    assert expected == suspect_claim_limit(batch_size=10_000, suspect=suspect)
