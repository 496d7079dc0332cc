"""Time as a parameter: everything that needs the time or waits gets a clock."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from delta_outbox.core.errors import BadSettings

NEVER: Final = float("inf")  # seconds
CLOCK_OFFSET_VARIABLE: Final = "OUTBOX_CLOCK_OFFSET_SECONDS"
_MAX_OFFSET: Final = 1e9  # seconds, about 31 years: further away is a typing error
# Linux: CLOCK_MONOTONIC stands still while the machine is suspended, and a lease does not. That of
# macOS goes on.
_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """What the project knows of time."""

    def now(self) -> datetime:
        """Return the current instant: aware, in UTC, with microseconds."""

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences have a meaning."""

    def sleep(self, seconds: float) -> None:
        """Wait.

        Args:
            seconds: how long; nothing happens for 0 or less.
        """


class SystemClock:
    """The clock of this machine, shifted by OUTBOX_CLOCK_OFFSET_SECONDS.

    The offset is for tests only, and `outbox status` shows it. It shifts instants, not durations.

    Args:
        environment: where the variable is looked up, once; the process environment by default.

    Raises:
        BadSettings: the variable does not hold a number of seconds.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        found = os.environ if environment is None else environment
        self.offset_seconds: Final = _offset(found.get(CLOCK_OFFSET_VARIABLE, ""))
        self._offset: Final = timedelta(seconds=self.offset_seconds)

    def now(self) -> datetime:
        """Return the current instant: aware, in UTC, with microseconds."""
        return datetime.now(UTC) + self._offset

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences have a meaning."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait.

        Args:
            seconds: how long; nothing happens for 0 or less.
        """
        if seconds > 0:
            time.sleep(seconds)


def boot_time() -> float:
    """Return the seconds since the machine was started, also those it was suspended.

    Whoever makes a call goes by it: it is the same in all processes of a machine, and nobody can
    set it.
    """
    return time.clock_gettime(_BOOT_CLOCK)


def _offset(text: str) -> float:
    if not text.strip():
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not abs(seconds) <= _MAX_OFFSET:  # also refuses nan and infinity
        raise BadSettings(
            f"{CLOCK_OFFSET_VARIABLE}: must be a number of seconds from {-_MAX_OFFSET:.0f} "
            f"to {_MAX_OFFSET:.0f}. Got: {text!r:.80}.",
            remedy=f"Unset {CLOCK_OFFSET_VARIABLE}: it is for tests only.",
        )
    return seconds
