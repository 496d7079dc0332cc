"""Decisions of an author have a second: what hangs or raises never holds up who asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any, Final, TypeVar

from delta_outbox.railway.names import duration
from delta_outbox.railway.tasks import Task

DECISION_LIMIT: Final = timedelta(seconds=1)

T = TypeVar("T")


class DecisionHangs(TimeoutError):
    """A decision took longer than it may; its default counts."""


def asked(task: Task[Any, Any], function: str, *arguments: Any) -> Any:
    """Ask a task for a decision: `back_off`, `on_fault` or `still_needed`.

    What hangs is left behind in a thread of its own, because nothing can end it.

    Args:
        task: with its clients.
        function: name of the decision.
        arguments: of it.

    Raises:
        DecisionHangs: it has not decided within `DECISION_LIMIT`.
        Exception: whatever it raises.
    """
    decide = getattr(task, function)
    if is_ours(task, function):
        return decide(*arguments)  # it neither hangs nor raises
    return within(DECISION_LIMIT, lambda: decide(*arguments))


def is_ours(task: Task[Any, Any], function: str) -> bool:
    """Say whether a decision is the default that we ship, and not code of an author.

    Args:
        task: with its clients.
        function: name of the decision.
    """
    return getattr(getattr(task, function), "__module__", None) == Task.__module__


def within(limit: timedelta, call: Callable[[], T]) -> T:
    """Return what a call returns, or raises, if it does so in time.

    Args:
        limit: how long it may take.
        call: in a thread of its own, which is left behind if it hangs.

    Raises:
        DecisionHangs: it took longer.
    """
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:  # noqa: BLE001 - whoever asked raises it
            raised.append(error)

    thread = Thread(target=run, name="decision", daemon=True)
    thread.start()
    thread.join(limit.total_seconds())
    if thread.is_alive():
        raise DecisionHangs(f"no decision within {duration(limit)}")
    if raised:
        raise raised[0]
    return returned[0]
