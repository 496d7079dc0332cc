"""What came of a call, as a host may say it: values of JSON, and errors without what is private."""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from delta_outbox.core.redaction import describe
from delta_outbox.publishers.echo import without_echo
from delta_outbox.publishers.protocol import Event
from delta_outbox.railway.modules import where_raised
from delta_outbox.railway.nesting import MOST_LEVELS, levels_of
from delta_outbox.railway.outcomes import CertainlyNot, Decided, Exit, FinallyRefused, NotDue
from delta_outbox.railway.tasks import FirstStep, OptimisticLock
from delta_outbox.workflow_engine.hosts.call import (
    LONGEST_LINE,
    LONGEST_REFERENCE,
    MOST_DATA,
    MOST_PICKLED,
    Call,
    Told,
    line_of,
)

LONGEST_PAUSE: Final = timedelta(days=3660)  # a longer one is a mistake, and no instant any more


class WrongValue(Exception):
    """An author's function has returned what it must not."""


def encoded(call: Call, task: Any, value: Any) -> Any:
    """Return what an author's function has returned as values of JSON.

    Args:
        call: of the function.
        task: that it belongs to.
        value: that it has returned.

    Raises:
        WrongValue: it is not what this function must return.
    """
    outcomes = type(task).outcomes()
    match call.function:
        case "lookup" if isinstance(task, OptimisticLock):
            steps = [_step(one, outcomes) for one in value]
            if len(line_of({"": steps})) > LONGEST_LINE // 2:
                raise WrongValue(
                    f"its first steps have more than {LONGEST_LINE // 2} bytes; "
                    "return those only that are not undone"
                )
            return steps
        case "lookup" if value is None:
            return None
        case "attempt" | "lookup":
            return decision(value, outcomes)
        case "first_step" if isinstance(value, str):
            return _reference(value)
        case "undo":
            return None
        case "still_needed":
            return bool(value)
        case "back_off" if value is None:
            return None
        case "back_off" if isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST_PAUSE:
            return value / timedelta(microseconds=1)
        case "on_fault" if isinstance(value, Exit):
            return None
        case "on_fault" if isinstance(value, outcomes):
            return value.value
    raise WrongValue(f"it returned {_kind(value)}")


def told(call: Call, error: BaseException) -> Told:
    """Return what may be said of an error.

    Its text is repeated only if its author has raised it for us; any other may hold what was sent,
    or a secret of the settings.

    Args:
        call: that has raised it.
        error: that was raised.
    """
    match error:
        case FinallyRefused():
            kind = "refused"
        case CertainlyNot() | ConnectionRefusedError():
            kind = "certainly_not"
        case NotDue():
            kind = "not_due"
        case _:
            kind = "unsure"
    try:
        if isinstance(error, CertainlyNot | NotDue | WrongValue):
            message = without_echo(describe(error), _event(call))
        else:
            message = place(error)
    except BaseException:  # noqa: BLE001 - it cannot even be shown
        message = type(error).__name__
    return Told(kind=kind, message=message, pickled=_pickled(error))


def decision(value: Any, outcomes: Any) -> dict[str, Any]:
    """Return a decision as values of JSON.

    Args:
        value: that an author's function has returned.
        outcomes: of the task.

    Raises:
        WrongValue: it is none, or too large.
    """
    if not isinstance(value, Decided) or not isinstance(value.outcome, outcomes):
        raise WrongValue(
            f"it returned {_kind(value)}; it must return Decided with one of {', '.join(outcomes)}"
        )
    try:
        text = json.dumps(dict(value.data), allow_nan=False, ensure_ascii=False)
        size, data = len(text.encode()), json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise WrongValue("the data of its decision are no values of JSON") from None
    if size > MOST_DATA:
        raise WrongValue(f"the data of its decision have more than {MOST_DATA} bytes")
    if levels_of(text) > MOST_LEVELS:
        raise WrongValue(
            f"the data of its decision have more than {MOST_LEVELS} levels; "
            "return a text of JSON in their place"
        )
    return {"outcome": value.outcome.value, "data": data}


def _reference(value: str) -> str:
    if len(value) > LONGEST_REFERENCE:
        raise WrongValue(
            f"its reference has more than {LONGEST_REFERENCE} characters; return the shortest text "
            "by which the third party finds the first step"
        )
    return value


def _step(value: Any, outcomes: Any) -> dict[str, Any]:
    if not isinstance(value, FirstStep) or not isinstance(value.reference, str):
        raise WrongValue(f"it returned a list with {_kind(value)}; it must hold FirstStep only")
    decided = None if value.decided is None else decision(value.decided, outcomes)
    reference = _reference(value.reference)
    return {"reference": reference, "expired": bool(value.expired), "decided": decided}


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of {type(value).__name__}"


def place(error: BaseException) -> str:
    """Return the class of an error and where an author's code has raised it, without its text.

    Args:
        error: that was raised.
    """
    return f"{type(error).__name__} ({where_raised(error)})"


def _event(call: Call) -> Event:
    """Return what an error must not repeat, and the names that it may.

    Texts are given as they are too: in JSON, quotes and letters beyond ASCII are escaped.
    """
    contents = [*_texts(call.facts)]
    with contextlib.suppress(ValueError):
        contents += _texts(json.loads(call.start))
    contents += [call.start, *map(json.dumps, call.facts.values())]
    return Event(
        event_id=call.task_id,
        event_type=f"{call.workflow}/{call.task}",
        key=call.instance,
        headers={str(number): content for number, content in enumerate(contents)},
        payload=b"",
        created_at=datetime.now(UTC),
    )


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() | list():
            for one in value.values() if isinstance(value, dict) else value:
                yield from _texts(one)


def _pickled(error: BaseException) -> str | None:
    if not isinstance(error, Exception):
        return None
    try:
        pickled = pickle.dumps(error)
    except BaseException:  # noqa: BLE001 - `error_of` has something to put in its place
        return None
    return base64.b64encode(pickled).decode() if len(pickled) <= MOST_PICKLED else None


def error_of(told: Told | None) -> Exception | None:
    """Return an error as `back_off` and `on_fault` are given it, or one like it.

    Args:
        told: what was said of it; None if there was no word.
    """
    if told is None:
        return None
    with contextlib.suppress(Exception):
        error = pickle.loads(base64.b64decode(told.pickled or ""))
        if isinstance(error, Exception):
            return error
    like = {"refused": FinallyRefused, "certainly_not": CertainlyNot}
    return like.get(told.kind, Exception)(told.message)
