"""How soon deliveries go on after a SIGKILL: of a relay, beside one that stands by, through `outbox
serve`. The next kill waits until everything of the last one is delivered.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.commands import Commands, commands, end, insert, policy
from benchmarks.delivered import Delivered
from benchmarks.figures import median, percentile, rounded, scaled
from benchmarks.progress import say
from benchmarks.slow_files import TYPE
from scripts.soak.reading import Log

from delta_outbox.session import using_server
from delta_outbox.heartbeat import BEAT_SECONDS

KILLS: Final = 50
LEASE: Final = 10  # seconds
BATCH: Final = 200
EVENTS: Final = 2_000  # open at each kill: ten batches
SECONDS_PER_EVENT: Final = 0.01  # a claim is in flight for a second, in two tasks
AT_WORK: Final = 2  # batches that are delivered before the kill
MOMENT: Final = 2.0  # seconds at most from then to the kill
_LOOK: Final = 0.05  # seconds
_COLUMNS: Final = ("event_id", "to_state", "reason", "claim_id", "relay_id", "occurred_at")


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of kills.
        rounds: not used: every kill is one.
    """
    del rounds
    kills, seed = scaled(KILLS, size, at_least=2), random.randrange(10**6)
    say(f"{kills} kills, seed {seed}")
    publisher = f'type = "{TYPE}"\nseconds_per_event = {SECONDS_PER_EVENT}'
    relay = f"batch_size = {BATCH}\nparallelism = 2"
    with commands(publisher, relay=relay) as home, home.serving() as url:
        with using_server(url) as spark:
            spark.sql(policy(lease_seconds=str(LEASE)))
        found = _Kills(home, url, random.Random(seed)).make(kills)
    return {
        "what": {
            "kills": kills,
            "lease": LEASE,
            "batch": BATCH,
            "events": EVENTS,
            "seed": seed,
        },
        **{
            name: _summary([getattr(one, name) for one in found])
            for name in ("redelivered", "others", "over")
        },
        "in_flight": median([one.in_flight for one in found]),
    }


def _summary(seconds: Iterable[float]) -> dict[str, Any]:
    found = [rounded(one) for one in seconds]
    return {
        "p50": percentile(found, 0.5),
        "p95": percentile(found, 0.95),
        "most": max(found),
        "all": found,
    }


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """How soon deliveries went on after a kill.

    Args:
        in_flight: deliveries under an open claim of the relay that was killed.
        redelivered: seconds until the first of them was on record as published.
        others: seconds until the first other one was.
        over: seconds until all of them were.
    """

    in_flight: int
    redelivered: float
    others: float
    over: float


def recovery(published: Mapping[str, float], *, at: float, in_flight: set[str]) -> Recovery:
    """Return how soon deliveries went on.

    Args:
        published: when each event was on record as published, in seconds since 1970.
        at: of the kill, the same.
        in_flight: ids of the events under an open claim of the relay that was killed; at least one.
    """
    later = {event_id: instant - at for event_id, instant in published.items() if instant > at}
    others = [seconds for event_id, seconds in later.items() if event_id not in in_flight]
    theirs = [later[event_id] for event_id in in_flight]
    return Recovery(
        in_flight=len(in_flight), redelivered=min(theirs), others=min(others), over=max(theirs)
    )


@dataclass(kw_only=True)
class _Open:
    """What has become of the events of one kill, by the transition log.

    Args:
        published: event to the seconds since 1970 at which that was on record.
        claims: claim to its relay and its events, as long as it has not ended.
    """

    published: dict[str, float] = field(default_factory=dict)
    claims: dict[str, tuple[str, set[str]]] = field(default_factory=dict)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Take what came to the log."""
        for row in rows:
            if row["to_state"] == "PUBLISHED":
                self.published[row["event_id"]] = row["occurred_at"].timestamp()
            if row["to_state"] == "CLAIMED":
                _, events = self.claims.setdefault(row["claim_id"], (row["relay_id"], set()))
                events.add(row["event_id"])
            else:
                self.claims.pop(row["claim_id"], None)

    def of(self, relay_id: str) -> set[str]:
        """Return the events that a relay has in flight."""
        return {
            event_id
            for relay, events in self.claims.values()
            if relay == relay_id
            for event_id in events
        }


class _Kills:
    """Kills relays.

    Args:
        home: that is served.
        url: of the server.
        chance: decides when.
    """

    def __init__(self, home: Commands, url: str, chance: random.Random) -> None:
        self._home = home
        self._chance = chance
        self._url = url
        folder = home.home.warehouse / "outbox.db"
        self._transitions = Log(folder / "outbox_transitions", _COLUMNS)
        self._beats = Log(folder / "outbox_relays", ("relay_id", "kind"))
        self._relays: dict[str, subprocess.Popen[str]] = {}  # by the relay's id
        self._count = 0  # events that were appended

    def make(self, kills: int) -> list[Recovery]:
        """Make so many kills, and return what came after each.

        Args:
            kills: how many.

        Raises:
            BenchmarkFailed: an event was lost.
        """
        found: list[Recovery] = []
        try:
            while len(found) < kills:
                while len(self._relays) < 2:
                    self._start()
                one = self._kill()
                if one is not None:
                    found.append(one)
                    say(f"{len(found)} of {kills}: {one}")
        finally:
            for process in self._relays.values():
                end(process)
        Delivered(self._home.home.delivered).check(self._count, once=False)
        self._home.check_published(self._count)
        return found

    def _start(self) -> None:
        """Start a relay, and wait for its first beat, which says how it is called."""
        process = self._home.start("relay", "--continuous")
        started: list[str] = []

        def has_begun() -> bool:
            started.extend(
                row["relay_id"] for _, row in self._beats.news() if row["kind"] == "started"
            )
            return bool(started)

        self._home.wait(has_begun, "a relay", process, *self._relays.values())
        self._relays[started[-1]] = process
        time.sleep(BEAT_SECONDS)  # each knows of the other

    def _kill(self) -> Recovery | None:
        """Append, kill the relay that is at work, and wait; None if it had nothing in flight."""
        open_, relays = _Open(), self._relays
        open_.add(row for _, row in self._transitions.news())
        open_.published.clear()
        with using_server(self._url) as spark:
            spark.sql(insert(self._count, EVENTS))
        self._count += EVENTS

        def is_at_work() -> bool:
            open_.add(row for _, row in self._transitions.news())
            return len(open_.published) >= AT_WORK * BATCH

        def is_in_flight() -> bool:
            open_.add(row for _, row in self._transitions.news())
            return bool(open_.claims)

        self._home.wait(is_at_work, "a relay at work", *relays.values())
        time.sleep(self._chance.uniform(0, MOMENT))
        self._home.wait(is_in_flight, "a claim in flight", *relays.values(), every=0.01)
        relay_id, _ = next(iter(open_.claims.values()))
        victim = relays.pop(relay_id)
        os.kill(victim.pid, signal.SIGKILL)
        at = time.time()
        victim.wait()
        open_.add(row for _, row in self._transitions.news())
        in_flight = open_.of(relay_id)

        def is_over() -> bool:
            open_.add(row for _, row in self._transitions.news())
            return len(open_.published) == EVENTS

        self._home.wait(is_over, "redelivery", *relays.values(), every=_LOOK)
        return recovery(open_.published, at=at, in_flight=in_flight) if in_flight else None
