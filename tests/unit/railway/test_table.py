"""What follows from the result of an attempt, row by row as docs/railway has it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from delta_outbox.railway import AskHuman, AtLeastOnce, AtMostOnce, Category, Decided, Outcome, UpTo
from delta_outbox.railway.algorithms.attempt_endings import conclude, give_up
from delta_outbox.railway.algorithms.steps import (
    Completed,
    Ending,
    Failed,
    NotSent,
    Reason,
    Record,
    Rejected,
    Result,
    Rules,
    Unknown,
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
    expected = Ending(reason=Reason.COMPLETED, decided=decided)
    assert expected == conclude(Completed(decided), rules, record, SOON)


@pytest.mark.parametrize("rules", EVERY, ids=names)
@pytest.mark.parametrize("record", [SURE, UNSURE], ids=["sure", "unsure"])
def test_what_was_not_sent_is_released(rules: Rules, record: Record) -> None:
    """Nothing sent is no attempt, and never makes a task uncertain."""
    assert Ending(reason=Reason.RELEASED) == conclude(NotSent(), rules, record, None)


@pytest.mark.parametrize("rules", EVERY, ids=names)
def test_a_certain_failure_is_tried_again_until_the_back_off_stops(rules: Rules) -> None:
    """A fault waits as long as the back-off says; then the task is exhausted."""
    waits = Ending(reason=Reason.FAILED, pause=SOON)
    assert waits == conclude(Failed(), rules, SURE, SOON)
    assert waits == conclude(Failed(), rules, UNSURE, SOON)
    assert Ending(reason=Reason.EXHAUSTED) == conclude(Failed(), rules, SURE, None)


@pytest.mark.parametrize("rules", LOCKS, ids=names)
def test_the_last_failure_after_an_unsure_attempt_asks_once_more(rules: Rules) -> None:
    """A fault proves nothing about an earlier request: what happened is found out first."""
    expected = Ending(reason=Reason.FAILED, settle=True, last=True)
    assert expected == conclude(Failed(), rules, UNSURE, None)


@pytest.mark.parametrize("rules", BLACK_BOXES.values(), ids=names)
def test_a_black_box_is_uncertain_after_an_unsure_attempt(rules: Rules) -> None:
    """Neither the last fault nor a refusal makes up for an attempt that may have acted."""
    assert Ending(reason=Reason.UNCERTAIN) == conclude(Failed(), rules, UNSURE, None)
    assert Ending(reason=Reason.UNCERTAIN) == conclude(Rejected(), rules, UNSURE, SOON)
    assert Ending(reason=Reason.UNCERTAIN) == conclude(Unknown(), rules, SURE, None)


@pytest.mark.parametrize("rules", EVERY, ids=names)
def test_a_refusal_is_final(rules: Rules) -> None:
    """What is refused for good is not tried again."""
    assert Ending(reason=Reason.REJECTED) == conclude(Rejected(), rules, SURE, SOON)


def test_the_answer_of_a_key_is_the_answer_of_every_request_with_it() -> None:
    """A stored refusal settles an idempotent task, also after an unsure attempt."""
    assert Ending(reason=Reason.REJECTED) == conclude(Rejected(), IDEMPOTENT, UNSURE, SOON)


def test_an_unsure_attempt_is_followed_as_the_category_allows() -> None:
    """The same key again; after settling, a look-up; an undo; or what the compromise says."""
    unknown = Ending(reason=Reason.UNKNOWN, pause=SOON)
    settled = Ending(reason=Reason.UNKNOWN, pause=SOON, settle=True)
    uncertain = Ending(reason=Reason.UNCERTAIN)
    assert unknown == conclude(Unknown(), IDEMPOTENT, SURE, SOON)
    assert settled == conclude(Unknown(), PESSIMISTIC, SURE, SOON)
    assert unknown == conclude(Unknown(), OPTIMISTIC, SURE, SOON)
    assert uncertain == conclude(Unknown(), BLACK_BOXES[AtMostOnce()], SURE, SOON)
    assert uncertain == conclude(Unknown(), BLACK_BOXES[AskHuman()], SURE, SOON)
    assert unknown == conclude(Unknown(), BLACK_BOXES[AtLeastOnce()], UNSURE, SOON)
    three = BLACK_BOXES[UpTo(3)]
    assert unknown == conclude(Unknown(), three, Record(executions=1), SOON)
    assert uncertain == conclude(Unknown(), three, Record(executions=2), SOON)


@pytest.mark.parametrize("rules", LOCKS, ids=names)
def test_the_last_unsure_attempt_is_found_out_about(rules: Rules) -> None:
    """When the back-off stops, what comes next waits for settling and does not act."""
    expected = Ending(reason=Reason.UNKNOWN, settle=True, last=True)
    assert expected == conclude(Unknown(), rules, SURE, None)


@pytest.mark.parametrize("rules", EVERY, ids=names)
@pytest.mark.parametrize(
    "result", [Failed(), Unknown(), NotSent()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("pause", [SOON, None], ids=["waits", "stops"])
def test_what_happened_is_found_out_once(rules: Rules, result: Result, pause: Any) -> None:
    """An attempt that begins when the task is over, and brings no answer, ends it as uncertain."""
    for over in (Record(executions=1, expired=True), Record(executions=1, stopped=True)):
        assert Ending(reason=Reason.UNCERTAIN) == conclude(result, rules, over, pause)


def test_giving_up_guesses_nothing() -> None:
    """Expired and exhausted are said only of a task that certainly was not done."""
    assert Ending(reason=Reason.EXPIRED) == give_up(Record(expired=True))
    assert Ending(reason=Reason.EXHAUSTED) == give_up(Record(stopped=True))
    assert Ending(reason=Reason.UNCERTAIN) == give_up(Record(expired=True, executions=1))
    assert Ending(reason=Reason.UNCERTAIN) == give_up(Record(stopped=True, executions=1))
