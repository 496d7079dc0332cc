"""Steps that several algorithms share: the lock at the beginning, the look-up, the end."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from typing import Any

from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.algorithms.attempt_endings import conclude, give_up
from delta_outbox.railway.algorithms.steps import (
    Algorithm,
    AskBackOff,
    Attempt,
    AttemptEnding,
    AttemptResult,
    End,
    Fault,
    Found,
    LookUp,
    NoAnswer,
    NotDone,
    ReadRecord,
    Record,
    Rules,
    Step,
    Unsure,
    WriteLock,
)


def end(ending: AttemptEnding) -> Algorithm:
    """End the attempt.

    Args:
        ending: to record.
    """
    yield from End(ending).ask()


def stand_back(*, settle: bool = False) -> Algorithm:
    """End an attempt that has done nothing.

    Args:
        settle: the task waits until earlier requests have taken effect or never will.
    """
    yield from end(AttemptEnding(reason=Reason.RELEASED, settle=settle))


def begin(*, race: bool = False) -> Generator[Step[Any], Any, Record | None]:
    """Lock the task, look whether it has an outcome, and whether it is somebody else's turn.

    Args:
        race: whether attempts may go on beside each other.

    Returns:
        What is on record; None if the attempt is over.
    """
    yield from WriteLock().ask()
    record = yield from ReadRecord().ask()
    if record.decided:
        yield from stand_back()
        return None
    if record.held_by_another and not race:
        yield from stand_back()
        return None
    return record


def act(rules: Rules, record: Record) -> Algorithm:
    """Call the third party, and end the attempt as the table says.

    Args:
        rules: of the task.
        record: as this attempt has seen it.
    """
    result = yield from Attempt().ask()
    yield from close(result, rules, record)


def close(result: AttemptResult, rules: Rules, record: Record) -> Algorithm:
    """End the attempt as the table says.

    Args:
        result: of the call.
        rules: of the task.
        record: as this attempt has seen it.
    """
    pause: timedelta | None = None
    if isinstance(result, Fault | Unsure):
        pause = yield from AskBackOff(result.error).ask()
    yield from end(conclude(result, rules, record, pause))


def look_up(record: Record) -> Generator[Step[Any], Any, Record | NoAnswer | None]:
    """Ask the third party what earlier attempts did.

    Args:
        record: as this attempt has seen it.

    Returns:
        The record, sure that nothing was done; NoAnswer; None if the attempt is over.
    """
    if record.unsure and not record.settled:
        yield from stand_back(settle=True)
        return None
    found = yield from LookUp().ask()
    match found:
        case Found(decided):
            yield from end(AttemptEnding(reason=Reason.COMPLETED, decided=decided))
            return None
        case NotDone():
            return record.resolved()
        case NoAnswer():
            return found


def be_sure(record: Record) -> Generator[Step[Any], Any, Record | None]:
    """Ask the third party what earlier attempts did; without an answer ask again later.

    Args:
        record: as this attempt has seen it.

    Returns:
        The record, sure that nothing was done; None if the attempt is over.
    """
    looked = yield from look_up(record)
    if isinstance(looked, NoAnswer):
        yield from ask_later(record, looked.error)
        return None
    return looked


def ask_later(record: Record, error: Exception | None) -> Algorithm:
    """End an attempt that could not find out what earlier ones did.

    Args:
        record: as this attempt has seen it.
        error: why there was no answer.
    """
    pause = None if record.over else (yield from AskBackOff(error).ask())
    if pause is None:
        yield from end(give_up(record))
    else:
        yield from end(AttemptEnding(reason=Reason.FAILED, pause=pause, error=error))
