"""What a second relay brings where the destination is slow, and four: each a process, through
`outbox serve`, whose Spark has eight slots; a relay publishes in two of them at once.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from benchmarks.commands import Commands, commands, insert
from benchmarks.costs import cpu_seconds
from benchmarks.delivered import Delivered
from benchmarks.figures import median, rate, ratio, rounded, scaled
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed
from benchmarks.slow_files import TYPE
from scripts.soak.reading import Log

from delta_outbox.runtime.session import using_server
from delta_outbox.store.heartbeat import BEAT_SECONDS

EVENTS: Final = 16_000
SECONDS_PER_EVENT: Final = 0.01
SLOTS: Final = 8
TASKS: Final = 2  # of a relay at once
BATCH: Final = 500  # as a claim has by itself: what a task publishes in five seconds
LANES: Final = 8
RELAYS: Final = (1, 2, 4)
_LOOK: Final = 0.2  # seconds
_DATABASE: Final = "outbox.db"


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: with each number of relays, and of newcomers.
    """
    count = scaled(EVENTS, size, at_least=10 * BATCH)
    publisher = f'type = "{TYPE}"\nseconds_per_event = {SECONDS_PER_EVENT}'
    relay = f"batch_size = {BATCH}\nparallelism = {TASKS}"
    rates: dict[str, list[float]] = {}
    cores: dict[str, list[float]] = {}
    newcomers = []
    with commands(publisher, relay=relay, OUTBOX_CORES=str(SLOTS)) as home, home.serving() as url:
        work = _Work(home, url)

        def measure(name: str, relays: int) -> None:
            seconds, busy = work.deliver(count, relays=relays)
            rates.setdefault(name, []).append(rate(count, seconds))
            cores.setdefault(name, []).append(busy)
            say(f"{name}: {rates[name][-1]:,.0f} events/s, {busy:g} cores")

        work.deliver(count // 2, relays=1)  # what is started warms up
        for _ in range(rounds):
            measure("1 relay, 1 lane", 1)
        work.change_lanes(LANES)
        for _ in range(rounds):
            for relays in RELAYS:
                measure(f"{relays} relay{'s' * (relays > 1)}, {LANES} lanes", relays)
            newcomers.append(work.newcomer(max(2 * count, EVENTS)))
            say(f"a newcomer has its share after {newcomers[-1]:.1f} s")
        work.check()
    found = {name: median(of) for name, of in rates.items()}
    alone = max(rate for name, rate in found.items() if name.startswith("1 relay"))
    return {
        "what": {
            "events": count,
            "rounds": rounds,
            "slots": SLOTS,
            "tasks": TASKS,
            "batch": BATCH,
            "milliseconds_per_event": 1000 * SECONDS_PER_EVENT,
        },
        "rates": rates,
        "rate": found,
        "cores": {name: median(of) for name, of in cores.items()},
        "ratios": {name: ratio(one, alone) for name, one in found.items()},
        "newcomer": {
            "seconds": newcomers,
            "beats": rounded(max(newcomers) / BEAT_SECONDS),
        },
    }


class _Work:
    """Delivers events through a server.

    Args:
        home: that is served.
        url: of the server.
    """

    def __init__(self, home: Commands, url: str) -> None:
        self._home = home
        self._url = url
        self._delivered = Delivered(home.home.delivered)
        self._count = 0
        self._lanes = 1

    def change_lanes(self, lanes: int) -> None:
        """Change the number of lanes, with no relay there."""
        who = ("--actor", "benchmark", "--reason", "several relays")
        self._home.outbox("lanes", "--to", str(lanes), "--apply", *who)
        self._lanes = lanes

    def deliver(self, count: int, *, relays: int) -> tuple[float, float]:
        """Append events to relays that are there, and wait for them.

        Args:
            count: how many.
            relays: how many.

        Returns:
            The seconds from the end of the append, and how many cores of this machine server and
            relays kept busy in them.
        """
        with self._running(relays) as processes:
            self._append(count)
            started, cpu = time.perf_counter(), cpu_seconds()
            self._wait_for_delivery(*processes)
            seconds = time.perf_counter() - started
            return seconds, rounded((cpu_seconds() - cpu) / seconds)

    def newcomer(self, count: int) -> float:
        """Start a relay beside one that is at work.

        Args:
            count: events, enough for both.

        Returns:
            The seconds from its first beat until each has its share of the lanes.

        Raises:
            BenchmarkFailed: all was delivered before.
        """
        with self._running(1) as processes:
            self._append(count)
            with self._home.running("relay", "--continuous") as other:
                shares = _Shares(self._home)
                half = self._lanes // 2
                self._home.wait(
                    lambda: shares.are(half, half),
                    "the share of a newcomer",
                    *processes,
                    other,
                    every=_LOOK,
                )
                if self._delivered.read() == self._count:
                    raise BenchmarkFailed("All was delivered before a newcomer had its share.")
                self._wait_for_delivery(*processes, other)
                return shares.seconds(half)

    def check(self) -> None:
        """Demand that everything was delivered once, and is on record so."""
        self._delivered.check(self._count)
        self._home.check_published(self._count)

    def _append(self, count: int) -> None:
        with using_server(self._url) as spark:
            spark.sql(insert(self._count, count))
        self._count += count

    def _wait_for_delivery(self, *processes: subprocess.Popen[str]) -> None:
        self._home.wait(
            lambda: self._delivered.read() == self._count, "delivery", *processes, every=_LOOK
        )

    @contextmanager
    def _running(self, relays: int) -> Iterator[list[subprocess.Popen[str]]]:
        """Run relays for a block that begins when each works on its share."""
        with ExitStack() as stack:
            processes = [
                stack.enter_context(self._home.running("relay", "--continuous"))
                for _ in range(relays)
            ]
            shares = _Shares(self._home)
            each = [self._lanes // relays] * relays
            self._home.wait(
                lambda: shares.are(*each),
                f"{relays} relays at work",
                *processes,
                every=_LOOK,
            )
            yield processes


class _Shares:
    """On how many lanes each relay works, by what it said last; relays that stopped left out.

    Args:
        home: of the outbox.
    """

    def __init__(self, home: Commands) -> None:
        log = home.home.warehouse / _DATABASE / "outbox_relays"
        self._log = Log(log, ("relay_id", "kind", "lanes", "at"))
        self._beats: list[dict[str, Any]] = []

    def are(self, *expected: int) -> bool:
        """Say whether those are the shares now, in any order, and no lane is in two of them."""
        self._beats += [row for _, row in self._log.news()]
        last = {row["relay_id"]: row for row in sorted(self._beats, key=lambda row: row["at"])}
        found = [row["lanes"] for row in last.values() if row["kind"] != "stopped"]
        lanes = {lane for its in found for lane in its}
        return sorted(map(len, found)) == sorted(expected) and len(lanes) == sum(expected)

    def seconds(self, lanes: int) -> float:
        """Return how long after its first beat the newest relay said that it works on so many."""
        started = max(
            (row for row in self._beats if row["kind"] == "started"), key=lambda row: row["at"]
        )
        theirs = [
            row["at"]
            for row in self._beats
            if row["relay_id"] == started["relay_id"] and len(row["lanes"]) == lanes
        ]
        return rounded((min(theirs) - started["at"]).total_seconds())
