"""What follows from the result of an attempt, row by row as docs/railway has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway import AskHuman, AtLeastOnce, AtMostOnce, Category, Decided, Outcome, UpTo
from delta_outbox.railway.algorithms.attempt_endings import conclude, give_up
from delta_outbox.railway.algorithms.history import History, Limits
from delta_outbox.railway.algorithms.steps import (
    AttemptEnding,
    AttemptResult,
    Completed,
    Fault,
    FinalRefusal,
    NothingSent,
    Record,
    Rules,
    Unsure,
)


class Done(Outcome):
    DONE = "done"


SURE, UNSURE = Record(), Record(executions=1)
SOON = timedelta(seconds=4)
IDEMPOTENT = Rules(category=Category.IDEMPOTENT)
PESSIMISTIC = Rules(category=Category.PESSIMISTIC_LOCK)
OPTIMISTIC = Rules(category=Category.OPTIMISTIC_LOCK)
BLACK_BOXES = {
    kind: Rules(category=Category.BLACK_BOX, compromise=kind)
    for kind in (AtMostOnce(), AskHuman(), UpTo(3), AtLeastOnce())
}
EVERY = (IDEMPOTENT, PESSIMISTIC, OPTIMISTIC, *BLACK_BOXES.values())
LOCKS = (IDEMPOTENT, PESSIMISTIC, OPTIMISTIC)


def names(rules: Rules) -> str:
    """Name the rules in the id of a test."""
    return f"{rules.category}-{rules.compromise}"


@pytest.mark.parametrize("rules", EVERY, ids=names)
@pytest.mark.parametrize("record", [SURE, UNSURE], ids=["sure", "unsure"])
def test_an_outcome_ends_the_task(rules: Rules, record: Record) -> None:
    """An answer is the outcome, whatever was before it."""
    decided = Decided(outcome=Done.DONE)
    expected = AttemptEnding(reason=Reason.COMPLETED, decided=decided)
    assert expected == conclude(Completed(decided), rules, record, SOON)


@pytest.mark.parametrize("rules", EVERY, ids=names)
@pytest.mark.parametrize("record", [SURE, UNSURE], ids=["sure", "unsure"])
def test_what_was_not_sent_is_released(rules: Rules, record: Record) -> None:
    """Nothing sent is no attempt, and never makes a task uncertain."""
    error = Exception("closed at night")
    released = AttemptEnding(reason=Reason.RELEASED, error=error)
    assert released == conclude(NothingSent(error), rules, record, None)


@pytest.mark.parametrize("rules", EVERY, ids=names)
def test_a_certain_failure_is_tried_again_until_the_back_off_stops(rules: Rules) -> None:
    """A fault waits as long as the back-off says; then the task is exhausted."""
    waits = AttemptEnding(reason=Reason.FAILED, pause=SOON)
    assert waits == conclude(Fault(), rules, SURE, SOON)
    assert waits == conclude(Fault(), rules, UNSURE, SOON)
    assert AttemptEnding(reason=Reason.EXHAUSTED) == conclude(Fault(), rules, SURE, None)


@pytest.mark.parametrize("rules", LOCKS, ids=names)
def test_the_last_failure_after_an_unsure_attempt_asks_once_more(rules: Rules) -> None:
    """A fault proves nothing about an earlier request: what happened is found out first."""
    expected = AttemptEnding(reason=Reason.FAILED, settle=True, last=True)
    assert expected == conclude(Fault(), rules, UNSURE, None)


@pytest.mark.parametrize("rules", BLACK_BOXES.values(), ids=names)
def test_a_black_box_is_uncertain_after_an_unsure_attempt(rules: Rules) -> None:
    """Neither the last fault nor a refusal makes up for an attempt that may have acted."""
    assert AttemptEnding(reason=Reason.UNCERTAIN) == conclude(Fault(), rules, UNSURE, None)
    assert AttemptEnding(reason=Reason.UNCERTAIN) == conclude(FinalRefusal(), rules, UNSURE, SOON)
    assert AttemptEnding(reason=Reason.UNCERTAIN) == conclude(Unsure(), rules, SURE, None)


@pytest.mark.parametrize("rules", EVERY, ids=names)
def test_a_refusal_is_final(rules: Rules) -> None:
    """What is refused for good is not tried again."""
    assert AttemptEnding(reason=Reason.REJECTED) == conclude(FinalRefusal(), rules, SURE, SOON)


def test_the_answer_of_a_key_is_the_answer_of_every_request_with_it() -> None:
    """A stored refusal settles an idempotent task, also after an unsure attempt."""
    expected = AttemptEnding(reason=Reason.REJECTED)
    assert expected == conclude(FinalRefusal(), IDEMPOTENT, UNSURE, SOON)


def test_an_unsure_attempt_is_followed_as_the_category_allows() -> None:
    """The same key again; after settling, a look-up; an undo; or what the compromise says."""
    unknown = AttemptEnding(reason=Reason.UNKNOWN, pause=SOON)
    settled = AttemptEnding(reason=Reason.UNKNOWN, pause=SOON, settle=True)
    uncertain = AttemptEnding(reason=Reason.UNCERTAIN)
    assert unknown == conclude(Unsure(), IDEMPOTENT, SURE, SOON)
    assert settled == conclude(Unsure(), PESSIMISTIC, SURE, SOON)
    assert unknown == conclude(Unsure(), OPTIMISTIC, SURE, SOON)
    assert uncertain == conclude(Unsure(), BLACK_BOXES[AtMostOnce()], SURE, SOON)
    assert uncertain == conclude(Unsure(), BLACK_BOXES[AskHuman()], SURE, SOON)
    assert unknown == conclude(Unsure(), BLACK_BOXES[AtLeastOnce()], UNSURE, SOON)
    three = BLACK_BOXES[UpTo(3)]
    assert unknown == conclude(Unsure(), three, Record(executions=1), SOON)
    assert uncertain == conclude(Unsure(), three, Record(executions=2), SOON)


@pytest.mark.parametrize("rules", LOCKS, ids=names)
def test_the_last_unsure_attempt_is_found_out_about(rules: Rules) -> None:
    """When the back-off stops, what comes next waits for settling and does not act."""
    expected = AttemptEnding(reason=Reason.UNKNOWN, settle=True, last=True)
    assert expected == conclude(Unsure(), rules, SURE, None)


@pytest.mark.parametrize("rules", EVERY, ids=names)
@pytest.mark.parametrize(
    "result", [Fault(), Unsure(), NothingSent()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("pause", [SOON, None], ids=["waits", "stops"])
def test_what_happened_is_found_out_once(rules: Rules, result: AttemptResult, pause: Any) -> None:
    """An attempt that begins when the task is over, and brings no answer, ends it as uncertain."""
    for over in (Record(executions=1, expired=True), Record(executions=1, stopped=True)):
        assert AttemptEnding(reason=Reason.UNCERTAIN) == conclude(result, rules, over, pause)


def test_giving_up_guesses_nothing() -> None:
    """Expired and exhausted are said only of a task that certainly was not done."""
    assert AttemptEnding(reason=Reason.EXPIRED) == give_up(Record(expired=True))
    assert AttemptEnding(reason=Reason.EXHAUSTED) == give_up(Record(stopped=True))
    assert AttemptEnding(reason=Reason.UNCERTAIN) == give_up(Record(expired=True, executions=1))
    assert AttemptEnding(reason=Reason.UNCERTAIN) == give_up(Record(stopped=True, executions=1))


@pytest.mark.parametrize(
    ("expires", "settle", "waits"),
    [
        (None, False, timedelta(days=30)),
        (timedelta(hours=1), False, timedelta(hours=1)),
        (timedelta(hours=1), True, timedelta(hours=2)),
        (timedelta(seconds=-1), False, timedelta(0)),
    ],
)
def test_no_back_off_outlasts_the_expiry(
    *, expires: timedelta | None, settle: bool, waits: timedelta
) -> None:
    """A task ends when it expires, whatever its back-off says; only an earlier request may have to
    settle first.
    """
    now = datetime(2026, 1, 1, tzinfo=UTC)
    reason = Reason.UNKNOWN if settle else Reason.FAILED
    ending = AttemptEnding(reason=reason, pause=timedelta(days=30), settle=settle)
    limits = Limits(expires=expires, settles=timedelta(hours=2))
    assert now + waits == History(triggered_at=now).ended(ending, limits, now).available_at


def test_what_could_not_be_attempted_is_not_tried_at_once_for_being_over() -> None:
    """A task that has expired and cannot be attempted, for want of a host, keeps its pause."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    released = AttemptEnding(reason=Reason.RELEASED, pause=SOON)
    over = Limits(expires=timedelta(seconds=-1))
    assert now + SOON == History(triggered_at=now).ended(released, over, now).available_at


def test_what_sent_nothing_waits_longer_each_time() -> None:
    """A task that is not due is not tried at once, whatever its author says, nor after its expiry;
    an attempt that counts starts the pauses anew.
    """
    now = begun = datetime(2026, 1, 1, tzinfo=UTC)
    released, limits = AttemptEnding(reason=Reason.RELEASED), Limits(expires=timedelta(seconds=25))
    history, waits = History(triggered_at=begun), []
    for _ in range(5):
        history = history.ended(released, limits, now)
        assert history.available_at is not None
        waits.append((history.available_at - now).total_seconds())
        now = history.available_at
    assert [1, 2, 4, 8, 10] == waits
    failed = AttemptEnding(reason=Reason.FAILED, pause=SOON)
    again = history.ended(failed, Limits(), now).ended(released, Limits(), now)
    assert now + timedelta(seconds=1) == again.available_at
