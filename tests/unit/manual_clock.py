"""A clock that stands until it is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ManualClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        """Stand somewhere."""
        self.seconds = 100.0

    def now(self) -> datetime:
        """Return an instant of 2026."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        """Return the seconds that it was moved."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.seconds += seconds
