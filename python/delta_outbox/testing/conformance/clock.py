"""A clock that stands still until it is told to go on."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Time as a test tells it; thread-safe.

    Args:
        start: the first instant; the time of this machine if left out.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime.now(UTC)
        self._elapsed = 0.0  # seconds
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the current instant: aware, in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        """Let time pass; nothing happens for 0 or less.

        Args:
            seconds: how much.
        """
        with self._lock:
            self._elapsed += max(0.0, seconds)
