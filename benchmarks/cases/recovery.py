"""How soon deliveries go on after a SIGKILL: of a relay, beside one that stands by, through `outbox
serve`. The next kill waits until everything of the last one is delivered.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.commands import Commands, commands, end, insert, policy
from benchmarks.delivered import Delivered
from benchmarks.figures import median, percentile, rounded, scaled
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed
from benchmarks.slow_files import TYPE
from scripts.soak.reading import Log

from delta_outbox.runtime.session import using_server
from delta_outbox.store.heartbeat import BEAT_SECONDS

KILLS: Final = 50
LEASE: Final = 10  # seconds
BATCH: Final = 200
EVENTS: Final = 2_000  # open at each kill: ten batches
SECONDS_PER_EVENT: Final = 0.01  # a claim is in flight for a second, in two tasks
MOMENT: Final = 0.3  # seconds from the look that shows a claim in flight to its end
_LOOK: Final = 0.05  # seconds
_COLUMNS: Final = ("event_id", "to_state", "reason", "claim_id", "relay_id", "occurred_at")


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of kills.
        rounds: not used: every kill is one.
    """
    del rounds
    kills = scaled(KILLS, size, at_least=2)
    publisher = f'type = "{TYPE}"\nseconds_per_event = {SECONDS_PER_EVENT}'
    relay = f"batch_size = {BATCH}\nparallelism = 2"
    with commands(publisher, relay=relay) as home, home.serving() as url:
        with using_server(url) as spark:
            spark.sql(policy(lease_seconds=str(LEASE)))
        found = _Kills(home, url).make(kills)
    redelivered = [one.redelivered for one in found]
    others = [one.others for one in found]
    return {
        "what": {"kills": kills, "lease": LEASE, "batch": BATCH, "events": EVENTS},
        "redelivered": _summary(redelivered),
        "others": _summary(others),
        "over": _summary([one.over for one in found]),
        "in_flight": {"median": median([one.in_flight for one in found])},
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


def recovery(
    rows: Iterable[dict[str, Any]], *, at: float, in_flight: set[str], wanted: int
) -> Recovery | None:
    """Return how soon deliveries went on, None as long as not all is published.

    Args:
        rows: of the transition log, of what is open at the kill, in order.
        at: of the kill, seconds since 1970.
        in_flight: ids of the events under an open claim of the relay that was killed.
        wanted: how many were open.
    """
    published: dict[str, float] = {}
    for row in rows:
        if row["to_state"] == "PUBLISHED":
            published[row["event_id"]] = row["occurred_at"].timestamp()
    if len(published) < wanted or not in_flight <= set(published):
        return None
    later = {event_id: instant - at for event_id, instant in published.items() if instant > at}
    others = [seconds for event_id, seconds in later.items() if event_id not in in_flight]
    theirs = [later[event_id] for event_id in in_flight]
    return Recovery(
        in_flight=len(in_flight), redelivered=min(theirs), others=min(others), over=max(theirs)
    )


@dataclass(kw_only=True)
class _Open:
    """What is open of the events of one kill, by the transition log.

    Args:
        rows: of these events.
        claims: claim to its relay and its events, as long as it has not ended.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[str, tuple[str, set[str]]] = field(default_factory=dict)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Take what came to the log."""
        for row in rows:
            self.rows.append(row)
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
    """

    def __init__(self, home: Commands, url: str) -> None:
        self._home = home
        self._url = url
        folder = home.home.warehouse / "outbox.db"
        self._transitions = Log(folder / "outbox_transitions", _COLUMNS)
        self._beats = Log(folder / "outbox_relays", ("relay_id", "kind"))
        self._relays: dict[str, subprocess.Popen[str]] = {}  # by the relay's id

    def make(self, kills: int) -> list[Recovery]:
        """Make so many kills, and return what came after each.

        Args:
            kills: how many.

        Raises:
            BenchmarkFailed: an event was lost.
        """
        found = []
        try:
            for number in range(kills):
                while len(self._relays) < 2:
                    self._start()
                found.append(self._kill(number * EVENTS))
                say(f"{number + 1} of {kills}: {found[-1]}")
        finally:
            for process in self._relays.values():
                end(process)
        Delivered(self._home.home.delivered).check(kills * EVENTS, once=False)
        _, status = self._home.outbox("status")
        if status["counts"]["PUBLISHED"] != kills * EVENTS:
            raise BenchmarkFailed(f"{kills * EVENTS} should be PUBLISHED: {status['counts']}")
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

    def _kill(self, first: int) -> Recovery:
        """Append, kill the relay that is at work while it has a claim in flight, and wait."""
        for _ in self._transitions.news():
            pass
        open_ = _Open()
        with using_server(self._url) as spark:
            spark.sql(insert(first, EVENTS))
        at_work: list[str] = []

        def is_in_flight() -> bool:
            open_.add(row for _, row in self._transitions.news())
            at_work[:] = [relay for relay, _ in open_.claims.values()]
            published = sum(row["to_state"] == "PUBLISHED" for row in open_.rows)
            return bool(at_work) and published >= 2 * BATCH

        self._home.wait(is_in_flight, "a claim in flight", *self._relays.values())
        time.sleep(MOMENT)
        victim = self._relays.pop(at_work[0])
        os.kill(victim.pid, signal.SIGKILL)
        at = time.time()
        victim.wait()
        open_.add(row for _, row in self._transitions.news())
        in_flight = open_.of(at_work[0])
        if not in_flight:
            raise BenchmarkFailed("A relay was killed that had nothing in flight.")
        found: list[Recovery] = []

        def is_over() -> bool:
            open_.add(row for _, row in self._transitions.news())
            one = recovery(open_.rows, at=at, in_flight=in_flight, wanted=EVENTS)
            found.extend([one] if one else [])
            return bool(found)

        self._home.wait(is_over, "redelivery", *self._relays.values(), every=_LOOK)
        return found[0]
