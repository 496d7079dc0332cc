"""How an attempt ends, by its result: one table, as one pure function.

How a claim of a delivery ends is decided in `lifecycle/endings.py`.
"""

from __future__ import annotations

from datetime import timedelta

from delta_outbox.lifecycle.states import Reason
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
from delta_outbox.railway.tasks import Category


def conclude(
    result: AttemptResult, rules: Rules, record: Record, pause: timedelta | None
) -> AttemptEnding:
    """Return how an attempt ends.

    It holds too for an attempt without a word, because its process died or its lease ran out:
    that is `Unsure()`. The record counts the attempts *before* this one that may have acted and
    are not known to have done nothing.

    An attempt that begins when a task is over, and unsure, is the last one: without an answer, or
    without a word, it ends the task as uncertain.

    Args:
        result: of the call.
        rules: of the task.
        record: as the attempt has seen it; of an attempt without a word, as the log was when it
            began.
        pause: what the back-off says; None is not to try again.
    """
    match result:
        case Completed(decided):
            return AttemptEnding(reason=Reason.COMPLETED, decided=decided)
        case Fault() | Unsure() | NothingSent() if record.over and record.unsure:
            return give_up(record)
        case NothingSent(error):
            return AttemptEnding(reason=Reason.RELEASED, error=error)
        case FinalRefusal(error):
            # The answer that a key has got is the answer of every request with that key.
            if record.unsure and rules.category is not Category.IDEMPOTENT:
                return AttemptEnding(reason=Reason.UNCERTAIN, error=error)
            return AttemptEnding(reason=Reason.REJECTED, error=error)
        case Fault(error):
            if pause is not None:
                return AttemptEnding(reason=Reason.FAILED, pause=pause, error=error)
            if not record.unsure:
                return AttemptEnding(reason=Reason.EXHAUSTED, error=error)
            if rules.category is Category.BLACK_BOX:
                return AttemptEnding(reason=Reason.UNCERTAIN, error=error)
            return AttemptEnding(reason=Reason.FAILED, settle=True, last=True, error=error)
        case Unsure(error):
            if rules.category is Category.BLACK_BOX and (
                pause is None or not rules.may_act_again(record.executions + 1)
            ):
                return AttemptEnding(reason=Reason.UNCERTAIN, error=error)
            return AttemptEnding(
                reason=Reason.UNKNOWN,
                pause=pause,
                settle=pause is None or rules.category is Category.PESSIMISTIC_LOCK,
                last=pause is None,
                error=error,
            )


def give_up(record: Record) -> AttemptEnding:
    """Return how a task ends that is to act no more.

    Args:
        record: an attempt that may have acted makes it uncertain.
    """
    if record.unsure:
        return AttemptEnding(reason=Reason.UNCERTAIN)
    return AttemptEnding(reason=Reason.EXPIRED if record.expired else Reason.EXHAUSTED)
