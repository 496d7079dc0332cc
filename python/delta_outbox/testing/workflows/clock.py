"""Time that passes only when somebody says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """A clock for tests.

    Args:
        now: where it begins.
    """

    def __init__(self, now: datetime = BEGINNING) -> None:
        self.now = now
        self.began = now
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._count = 0

    def pass_until(self, moment: datetime) -> None:
        """Let time pass, and let happen what is due until then.

        Args:
            moment: the new time; an earlier one changes nothing.
        """
        while self._due and self._due[0][0] <= moment:
            due, _, happens = self._due.pop(0)
            self.now = max(self.now, due)
            happens()
        self.now = max(self.now, moment)

    def pass_for(self, span: timedelta) -> None:
        """Let time pass.

        Args:
            span: how much.
        """
        self.pass_until(self.now + span)

    def at(self, moment: datetime, happens: Callable[[], None]) -> None:
        """Let something happen at a moment.

        Args:
            moment: when.
            happens: what.
        """
        self._count += 1
        self._due.append((moment, self._count, happens))
        self._due.sort(key=lambda one: one[:2])

    def pass_everything(self) -> None:
        """Let time pass until all that is due has happened."""
        while self._due:
            self.pass_until(self._due[0][0])

    @property
    def elapsed(self) -> timedelta:
        """Return how much time has passed since the beginning."""
        return self.now - self.began
