"""Says when a relay polls the logs again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from delta_outbox.core.clock import Clock

STALE_SECONDS: Final = 5.0  # a plan older than this is made anew: retries, operators, policies
STALE_FACTOR: Final = 10.0  # but polling takes at most this share of the time
LOW_SECONDS: Final = 1.0  # with nothing planned any more, what is new is asked for so often
NEWS_SECONDS: Final = 0.1  # and where that is all that has to be asked


@dataclass(frozen=True, kw_only=True)
class Spare:
    """What could go beside what is in flight, while no claim can be cut of what is planned.

    Args:
        is_idle: something slow is in flight, and another destination has nothing planned.
        has_slot: one claim more could be in flight.
    """

    is_idle: bool
    has_slot: bool


class Timing:
    """Remembers when one relay has polled. All instants are monotonic seconds.

    Args:
        clock: the relay's.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.next_due = 0.0
        """When something may become eligible, as far as is known."""
        self._stale_at = self._low_at = self._fresh_until = float("-inf")

    @property
    def is_fresh(self) -> bool:
        """Say whether another poll would probably show the same."""
        return self._clock.monotonic() < self._fresh_until

    def is_over(self, *, has_plan: bool) -> bool:
        """Say whether it is time for another poll.

        Args:
            has_plan: something of the last one is left to be claimed.
        """
        at = self._stale_at if has_plan else min(self._stale_at, self.next_due, self._low_at)
        return self._clock.monotonic() >= at

    def begin(self) -> float:
        """Note that a poll begins, and return when."""
        started = self._clock.monotonic()
        self._low_at = self._fresh_until = started + LOW_SECONDS
        return started

    def end(self, started: float, *, is_cheap: bool = False) -> None:
        """Note for how long a poll holds that has just been made.

        Args:
            started: when it began.
            is_cheap: it asked for news only, as the next one may.
        """
        now = self._clock.monotonic()
        took = now - started
        self._fresh_until = now + max(LOW_SECONDS, took)
        self._stale_at = now + max(STALE_SECONDS, STALE_FACTOR * took)
        if is_cheap:
            self._low_at = started + NEWS_SECONDS

    def extend(self, started: float) -> None:
        """Note that a poll has found all as it was.

        Args:
            started: when it began.
        """
        self._stale_at = started + STALE_SECONDS

    def now(self) -> datetime:
        """Return the current instant."""
        return self._clock.now()

    def instant_of(self, at: datetime) -> float:
        """Return when a time of the clock is reached.

        Args:
            at: in UTC.
        """
        return self._clock.monotonic() + (at - self._clock.now()).total_seconds()

    def due_no_later(self, than: float) -> None:
        """Note that something may become eligible at an instant.

        Args:
            than: the instant.
        """
        self.next_due = min(self.next_due, than)
