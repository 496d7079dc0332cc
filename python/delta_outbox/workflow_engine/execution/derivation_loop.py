"""Writes what follows on a thread of its own, so that nothing of a relay waits for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread
from typing import Final

from delta_outbox.core.redaction import describe
from delta_outbox.relay.destinations.task_runner import Followed

POLL_SECONDS: Final = 0.2  # between two looks at the logs, without news


class DerivationLoop:
    """Takes steps as long as there is something to write, and looks again after a while.

    Args:
        step: writes once.
    """

    def __init__(self, step: Callable[[], Followed]) -> None:
        self._step = step
        self._changed = Condition()
        self._asked: list[Future[Followed]] = []  # and not answered yet
        self._wrote = False  # since all who asked were answered
        self._is_closing = self._is_over = False
        self._error: Exception | None = None
        self._thread = Thread(target=self._run, name="derivation", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what a step has raised.

        Raises:
            Exception: of the step.
        """
        if self._error is not None:
            raise self._error

    def ask(self) -> Future[Followed]:
        """Return what will have come of the first step that begins from now on; what was written
        since the last time that somebody asked counts. An error of a step is its exception.
        """
        answer = Future[Followed]()
        with self._changed:
            self._asked.append(answer)
            if self._is_over:
                self._answer(1, more=True)
            self._changed.notify_all()
        return answer

    def close(self) -> None:
        """End it, after the step that it is taking."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_closing:
                asked = len(self._asked)
                came = self._step()
                with self._changed:
                    self._wrote |= came.wrote
                    self._answer(asked, more=came.more)
                    if not (came.wrote or came.more or self._asked or self._is_closing):
                        self._changed.wait(POLL_SECONDS)
        except BaseException as error:  # noqa: BLE001 - whoever checks raises it
            self._error = error if isinstance(error, Exception) else _ended_by(error)
        finally:
            with self._changed:
                self._is_over = True
                self._answer(len(self._asked), more=True)

    def _answer(self, count: int, *, more: bool) -> None:
        """Answer those who have asked first."""
        answered, self._asked[:count] = self._asked[:count], []
        for one in answered:
            if self._error is not None:
                one.set_exception(self._error)
            else:
                one.set_result(Followed(wrote=self._wrote, more=more))
        if answered and not self._asked:
            self._wrote = False


def _ended_by(error: BaseException) -> RuntimeError:
    """Return what a relay raises instead of an error that is none of a usual kind, such as the
    panic of an engine in another language: it must neither be overlooked nor end it without a word.
    """
    ended = RuntimeError(f"what follows in workflows is no longer written: {describe(error)}")
    ended.__cause__ = error
    return ended
