"""What follows from the result of an attempt: one table, as one pure function."""

from __future__ import annotations

from datetime import timedelta

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
from delta_outbox.railway.tasks import Category


def conclude(result: Result, rules: Rules, record: Record, pause: timedelta | None) -> Ending:
    """Return how an attempt ends.

    It holds too for an attempt without a word, because its process died or its lease ran out:
    that is `Unknown()`. The record counts the attempts *before* this one that may have acted and
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
            return Ending(reason=Reason.COMPLETED, decided=decided)
        case Failed() | Unknown() | NotSent() if record.over and record.unsure:
            return give_up(record)
        case NotSent():
            return Ending(reason=Reason.RELEASED)
        case Rejected(error):
            # The answer that a key has got is the answer of every request with that key.
            if record.unsure and rules.category is not Category.IDEMPOTENT:
                return Ending(reason=Reason.UNCERTAIN, error=error)
            return Ending(reason=Reason.REJECTED, error=error)
        case Failed(error):
            if pause is not None:
                return Ending(reason=Reason.FAILED, pause=pause, error=error)
            if not record.unsure:
                return Ending(reason=Reason.EXHAUSTED, error=error)
            if rules.category is Category.BLACK_BOX:
                return Ending(reason=Reason.UNCERTAIN, error=error)
            return Ending(reason=Reason.FAILED, settle=True, last=True, error=error)
        case Unknown(error):
            if rules.category is Category.BLACK_BOX and (
                pause is None or not rules.may_act_again(record.executions + 1)
            ):
                return Ending(reason=Reason.UNCERTAIN, error=error)
            return Ending(
                reason=Reason.UNKNOWN,
                pause=pause,
                settle=pause is None or rules.category is Category.PESSIMISTIC_LOCK,
                last=pause is None,
                error=error,
            )


def give_up(record: Record) -> Ending:
    """Return how a task ends that is to act no more.

    Args:
        record: an attempt that may have acted makes it uncertain.
    """
    if record.unsure:
        return Ending(reason=Reason.UNCERTAIN)
    return Ending(reason=Reason.EXPIRED if record.expired else Reason.EXHAUSTED)
