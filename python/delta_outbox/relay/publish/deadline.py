"""Carries the deadline of a claim from the driver to its workers."""

from __future__ import annotations

import contextlib
import platform
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE: Final = Path("/proc/self/ns/time")


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """A moment, told in both clocks: a system clock may be set while a claim is on its way.

    Args:
        machine: where the monotonic clock counts, as `this_machine` names it.
        monotonic: its seconds there.
        system: seconds since 1970, for workers on other machines.
    """

    machine: str
    monotonic: float
    system: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline some seconds from now.

        Args:
            seconds: how many.
        """
        return cls(
            machine=this_machine(),
            monotonic=time.monotonic() + seconds,
            system=time.time() + seconds,
        )

    def seconds_left(self) -> float:
        """Return the seconds until it comes; negative once it has passed."""
        if self.machine == this_machine():
            return self.monotonic - time.monotonic()
        return self.system - time.time()


def this_machine() -> str:
    """Return a name that processes share exactly if they share a monotonic clock."""
    with contextlib.suppress(OSError):
        boot = _BOOT.read_text().strip()
        namespace: Path | None = None
        with contextlib.suppress(OSError):  # kernels before 5.6 have none
            namespace = _TIME_NAMESPACE.readlink()
        return f"{boot} {namespace}"
    return f"{platform.node()} {uuid.getnode()}"  # macOS: one clock from boot on
