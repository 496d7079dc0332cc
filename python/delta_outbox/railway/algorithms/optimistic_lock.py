"""Two steps: attempts may race for the first, and only one of them takes the second."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.algorithms.attempt_endings import give_up
from delta_outbox.railway.algorithms.shared_steps import begin, close, end, stand_back
from delta_outbox.railway.algorithms.steps import (
    Algorithm,
    Attempt,
    AttemptEnding,
    Begun,
    Completed,
    FinalRefusal,
    ListFirstSteps,
    NoAnswer,
    Record,
    Rules,
    Step,
    TakeFirstStep,
    Undo,
    Unsure,
)
from delta_outbox.railway.tasks import FirstStep

Steps = tuple[FirstStep[Any], ...]


def optimistic_lock(rules: Rules) -> Algorithm:
    """Make one attempt.

    Args:
        rules: of the task.
    """
    record = yield from begin(race=True)
    if record is None:
        return
    if record.over:
        yield from last_attempt(record)
        return
    begun = yield from TakeFirstStep().ask()
    if isinstance(begun, Begun):
        yield from go_on(begun.reference, rules, record)
        return
    if not record.alone:
        yield from stand_back()
        return
    if isinstance(begun, FinalRefusal) and record.unsure:
        found = yield from find_out(record)
        if found is None:
            return
        record = found
    yield from close(begun, rules, record)


def go_on(mine: str, rules: Rules, record: Record) -> Algorithm:
    """Take the second step, if it is the turn of this attempt.

    Args:
        mine: the reference of its first step.
        rules: of the task.
        record: as this attempt has seen it.
    """
    steps = yield from ListFirstSteps().ask()
    if isinstance(steps, NoAnswer) or mine not in [one.reference for one in steps]:
        # What cannot be seen cannot be judged: it is tried again from the start.
        yield from close(Unsure(getattr(steps, "error", None)), rules, record)
        return
    older = steps[: [one.reference for one in steps].index(mine)]
    if not record.alone and not all(one.expired for one in older):
        yield from leave(mine)
        return
    others = [one for one in steps if one.reference != mine] if record.alone else older
    if not (yield from undo(others)):
        yield from close(Unsure(), rules, record)
        return
    steps = yield from ListFirstSteps().ask()
    if isinstance(steps, NoAnswer):
        yield from close(Unsure(steps.error), rules, record)
        return
    if (done := taken(steps)) is not None:
        if not record.alone and not done.expired:
            yield from leave(mine)
            return
        yield from Undo(mine).ask()
        yield from end(AttemptEnding(reason=Reason.COMPLETED, decided=done.decided))
        return
    result = yield from Attempt(mine).ask()
    if not isinstance(result, Completed | Unsure) and not (yield from Undo(mine).ask()):
        result = Unsure()  # the first step stands still: the next attempt undoes it
    yield from close(result, rules, record.resolved())


def last_attempt(record: Record) -> Algorithm:
    """Find out whether the task was done, and end it.

    Args:
        record: as this attempt has seen it.
    """
    if not record.alone:
        yield from stand_back()
        return
    found = yield from find_out(record)
    if found is not None:
        yield from end(give_up(found))


def find_out(record: Record) -> Generator[Step[Any], Any, Record | None]:
    """Undo every first step, and look whether a second one was taken before.

    Args:
        record: as this attempt has seen it.

    Returns:
        What is known now; None if the attempt is over.
    """
    if not record.unsure:
        return record
    steps = yield from ListFirstSteps().ask()
    if isinstance(steps, NoAnswer) or not (yield from undo(steps)):
        return record
    steps = yield from ListFirstSteps().ask()
    if isinstance(steps, NoAnswer):
        return record
    if (done := taken(steps)) is not None:
        yield from end(AttemptEnding(reason=Reason.COMPLETED, decided=done.decided))
        return None
    return record.resolved()  # no second step can be taken on what was undone


def undo(steps: Steps | list[FirstStep[Any]]) -> Generator[Step[Any], Any, bool]:
    """Undo first steps that have no second one, and say whether all certainly are undone.

    Args:
        steps: of other attempts.
    """
    for one in steps:
        if one.decided is None and not (yield from Undo(one.reference).ask()):
            return False
    return True


def taken(steps: Steps) -> FirstStep[Any] | None:
    """Return the step whose second one was taken, None if there is none.

    Args:
        steps: that the third party has.
    """
    return next((one for one in steps if one.decided is not None), None)


def leave(mine: str) -> Algorithm:
    """Undo one's own first step, and end an attempt that has done nothing else.

    Args:
        mine: the reference of the first step.
    """
    yield from Undo(mine).ask()
    yield from stand_back()
