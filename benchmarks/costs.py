"""What work costs: seconds by the clock, and seconds of the processor in all processes of ours."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psutil
from benchmarks.figures import median, rate, rounded


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What it cost to deliver events.

    Args:
        events: how many.
        seconds: by the clock.
        cpu_seconds: of this process and of all that it started: JVM and workers, but no broker.
    """

    events: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Return the events per second."""
        return rate(self.events, self.seconds)

    @property
    def cpu_microseconds(self) -> float:
        """Return the microseconds of the processor for an event."""
        return rounded(self.cpu_seconds / self.events * 1e6)


class Meter:
    """Counts what is spent since it was made."""

    def __init__(self) -> None:
        self._cpu = cpu_seconds()
        self._started = time.perf_counter()

    def cost(self, events: int) -> Cost:
        """Return what was spent so far.

        Args:
            events: that were delivered for it.
        """
        seconds = time.perf_counter() - self._started
        return Cost(
            events=events,
            seconds=rounded(seconds),
            cpu_seconds=rounded(cpu_seconds() - self._cpu),
        )


def cpu_seconds() -> float:
    """Return the seconds of the processor that this process and those below it took so far.

    Those that have ended count where a process below this one has waited for them.
    """
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
            if process.pid != this.pid:
                total += times.children_user + times.children_system
    return total


def as_documents(costs: Mapping[str, Sequence[Cost]]) -> dict[str, list[dict[str, float]]]:
    """Return costs as a document holds them, under `costs`.

    Args:
        costs: of each round, by what was done.
    """
    return {name: [asdict(one) for one in rounds] for name, rounds in costs.items()}


def rates(costs: Sequence[Cost]) -> dict[str, Any]:
    """Return what a document says of rounds: their rates and the medians.

    Args:
        costs: at least one.
    """
    return {
        "rate": median([one.rate for one in costs]),
        "rates": [one.rate for one in costs],
        "cpu_microseconds": median([one.cpu_microseconds for one in costs]),
    }
