"""Writes what follows on a thread of its own, so that nothing of a relay waits for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

POLL_SECONDS: Final = 0.2  # between two looks at the logs, without news


class DerivationLoop:
    """Takes steps as long as there is something to write, and looks again after a while.

    Args:
        step: writes once; says whether it has written, or there is more to read.
    """

    def __init__(self, step: Callable[[], bool]) -> None:
        self._step = step
        self._changed = Condition()
        self._asked = self._answered = 0  # looks that were asked for, and those that were taken
        self._wrote = False  # since the last answer
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

    def nothing_follows(self) -> bool:
        """Look at the logs once more; say whether nothing was to be written since the last time
        that somebody asked.

        Raises:
            Exception: of a step.
        """
        with self._changed:
            self._asked += 1
            number = self._asked
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._answered >= number or self._is_over)
            wrote, self._wrote = self._wrote, False
        self.check()
        return not wrote

    def close(self) -> None:
        """End it, after the step that it is taking."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_closing:
                asked = self._asked
                while self._step() and not self._is_closing:
                    self._wrote = True
                with self._changed:
                    self._answered = asked
                    self._changed.notify_all()
                    if self._asked == asked:
                        self._changed.wait(POLL_SECONDS)
        except Exception as error:  # noqa: BLE001 - whoever checks raises it
            self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()
