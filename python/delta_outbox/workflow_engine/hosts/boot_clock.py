"""The clock of deadlines: the same in all processes of a machine, and nobody can set it."""

from __future__ import annotations

import time
from typing import Final

# Linux: CLOCK_MONOTONIC stands still while the machine is suspended, and a lease does not. That of
# macOS goes on.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Return the seconds since the machine was started, also those it was suspended."""
    return time.clock_gettime(_CLOCK)
