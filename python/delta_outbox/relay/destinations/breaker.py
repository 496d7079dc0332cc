"""A circuit breaker: after failures in a row a destination is left alone, then tried. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class BreakerState(StrEnum):
    """Whether a destination may be tried."""

    CLOSED = "closed"  # it may
    OPEN = "open"  # it may not
    HALF_OPEN = "half_open"  # one delivery may, to see whether it answers


class Breaker:
    """The breaker of one destination.

    Args:
        failures: in a row that open it; None: it never opens, and only counts.
        seconds: that it stays open.
    """

    def __init__(self, *, failures: int | None, seconds: float) -> None:
        self._limit = failures
        self._seconds = seconds
        self._until: float | None = None  # monotonic seconds; None: closed
        self._is_probing = False
        self.in_a_row = 0  # failures since the last answer
        self.error = ""  # of the last failure
        self.failed_probes = 0  # since it opened

    @property
    def opens(self) -> bool:
        """Say whether it can open."""
        return self._limit is not None

    @property
    def is_open(self) -> bool:
        """Say whether it has opened and not closed since; a probe may be due or under way."""
        return self._until is not None

    def state(self, now: float) -> BreakerState:
        """Return the state.

        Args:
            now: monotonic seconds.
        """
        if self._until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self._until else BreakerState.HALF_OPEN

    def room(self, now: float) -> int | None:
        """Return how many deliveries may be claimed now, None for as many as there are.

        Args:
            now: monotonic seconds.
        """
        match self.state(now):
            case BreakerState.CLOSED:
                return None
            case BreakerState.OPEN:
                return 0
            case BreakerState.HALF_OPEN:
                return 0 if self._is_probing else 1

    def wait(self, now: float) -> float | None:
        """Return the seconds until a probe is due, None if none is to come.

        Args:
            now: monotonic seconds.
        """
        return None if self._until is None else max(0.0, self._until - now)

    def started(self) -> None:
        """Note that deliveries were claimed; while it is open they are the probe."""
        self._is_probing = self.is_open

    def not_asked(self) -> None:
        """Note that a claim has ended without the destination: the next probe may go at once."""
        self._is_probing = False

    def completed(self, answered: Iterable[bool], *, error: str, now: float) -> bool:
        """Note what became of a claim, and say whether there is something to tell others.

        A probe without a verdict (its worker crashed, nothing was sent) has failed: the next one
        waits as well. One that was not even to ask it is `not_asked`.

        Args:
            answered: of each delivery that was tried, in order: whether the destination answered.
            error: of the last one that failed.
            now: monotonic seconds.
        """
        found = list(answered)
        for one in found:
            self.in_a_row = 0 if one else self.in_a_row + 1
        if error:
            self.error = error
        if self.state(now) is BreakerState.OPEN:
            return False  # of a claim from before it opened
        if self.is_open:
            return self._judge(any(found), now)
        if self._limit is not None and self.in_a_row >= self._limit:
            self._until = now + self._seconds
            return True
        return False

    def trip(self, error: str, *, now: float) -> None:
        """Open it: the destination is known not to answer.

        Args:
            error: why.
            now: monotonic seconds.
        """
        self.error = error
        self._until = now + self._seconds
        self._is_probing = False
        self.failed_probes += 1

    def reopen(self, error: str, *, now: float, seconds: float) -> None:
        """Open it as a former relay has left it.

        Args:
            error: why.
            now: monotonic seconds.
            seconds: until a probe is due; never more than it stays open.
        """
        self.error = error
        self._until = now + min(seconds, self._seconds)

    def _judge(self, is_well: bool, now: float) -> bool:
        self._is_probing = False
        if is_well:
            self._until, self.in_a_row, self.error, self.failed_probes = None, 0, "", 0
        else:
            self.failed_probes += 1
            self._until = now + self._seconds
        return True
