"""What waits for time or for a person costs what is due: a million scheduled events, each with an
ordering key of its own, and ten thousand open claims of `todo`, before events that come one by one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, Meter, as_documents, cpu_seconds
from benchmarks.figures import median, ratio, rounded, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed
from benchmarks.room import EVENT_BYTES, check_room
from benchmarks.seeding import write_open_claims

from delta_outbox.outbox import Outbox
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.summary import Summary

SCHEDULED: Final = 1_000_000
CLAIMED: Final = 10_000  # each by a claim of its own, as items of a To-Do list are
LATER: Final = timedelta(days=30)  # until which they wait
CAME_ALONE: Final = 10  # events while a relay runs, one after the other
IDLE_SECONDS: Final = 15.0
FIRST, ONCE, RUNNING = "first run of a process", "a later run", "a relay that runs"
_LIMIT: Final = 300.0  # seconds that one event is given


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of events.
        rounds: later runs, of one event each.
    """
    scheduled, claimed = scaled(SCHEDULED, size), scaled(CLAIMED, size, at_least=100)
    check_room(EVENT_BYTES * (scheduled + claimed))
    costs: dict[str, list[Cost]] = {}
    idle = {}
    with broker() as kafka:
        for name, waiting in (("nothing", []), ("them", [scheduled, claimed])):
            due = kafka.topic(Stream(name=f"bench.due-{name}", count=1 + rounds + CAME_ALONE))
            found, idle[name] = in_own_process(one_by_one, kafka.bootstrap, due, waiting, rounds)
            kafka.check(due)
            costs |= {f"{kind}, {name} before it": spent for kind, spent in found.items()}
            say(f"{name} before it: {found}")
    seconds = {name: median([one.seconds for one in spent]) for name, spent in costs.items()}
    cpu = {name: median([one.cpu_seconds for one in spent]) for name, spent in costs.items()}
    return {
        "what": {"scheduled": scheduled, "claimed": claimed, "rounds": rounds},
        "seconds": seconds,
        "cpu_seconds": cpu,
        "idle_cores": idle,
        "ratios": {
            kind: {
                "seconds": ratio(*(seconds[f"{kind}, {name} before it"] for name in _BOTH)),
                "cpu_seconds": ratio(*(cpu[f"{kind}, {name} before it"] for name in _BOTH)),
            }
            for kind in (FIRST, ONCE, RUNNING)
        },
        "costs": as_documents(costs),
    }


_BOTH: Final = ("them", "nothing")


def one_by_one(
    bootstrap: str, due: Stream, waiting: list[int], rounds: int
) -> tuple[dict[str, list[Cost]], float]:
    """Append and publish one event after the other.

    Args:
        bootstrap: address of the broker.
        due: the events.
        waiting: how many are scheduled and claimed before them; nothing is if left empty.
        rounds: later runs.

    Returns:
        What each event cost, from the end of its append until it is published, and how many cores
        a relay kept busy that found nothing to do.

    Raises:
        BenchmarkFailed: what waits did not go on waiting.
    """
    found: dict[str, list[Cost]] = {}
    numbers = iter(range(len(due)))
    with ours.outbox_to_kafka(bootstrap) as outbox:
        others = _write(outbox, waiting) if waiting else []
        outbox.refresh()  # what waits has done so for long: the projection has seen it
        found[FIRST] = [_once(outbox, due, next(numbers))]
        found[ONCE] = [_once(outbox, due, next(numbers)) for _ in range(rounds)]
        with _running(outbox) as relay:
            found[RUNNING] = [relay.publish(due, number) for number in numbers]
            busy = relay.idle_cores()
        ours.check(outbox, [due])
        _check_waiting(outbox, others)
    return found, busy


def _write(outbox: Outbox, waiting: list[int]) -> list[tuple[Stream, str]]:
    """Write what waits, and return it with the state that it has."""
    count, claims = waiting
    scheduled = Stream(name="bench.scheduled", count=count, keys=count)
    claimed = Stream(name="bench.claimed", count=claims)
    now = datetime.now(UTC)
    ours.append(outbox, scheduled, available_at=now + LATER)
    write_open_claims(outbox, claimed, owner="todo", now=now, until=now + LATER)
    return [(scheduled, "PENDING"), (claimed, "CLAIMED")]


def _append(outbox: Outbox, due: Stream, number: int) -> None:
    rows = due.frame(outbox.spark.newSession(), first=number, count=1)
    rows.write.format("delta").mode("append").saveAsTable(outbox.tables.events)


def _once(outbox: Outbox, due: Stream, number: int) -> Cost:
    _append(outbox, due, number)
    meter = Meter()
    summary = Relay(outbox).run(Mode.ONCE)
    if summary.published != 1:
        raise BenchmarkFailed(f"One event is due, and a run ended so: {summary.as_dict()}")
    return meter.cost(1)


class _Running:
    """A relay that runs beside whoever appends.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._published = threading.Condition()
        self._count = 0

    def on_progress(self, summary: Summary) -> None:
        """Note what has been published."""
        with self._published:
            self._count = summary.published
            self._published.notify_all()

    def publish(self, due: Stream, number: int) -> Cost:
        """Append an event and wait until it is published.

        Raises:
            BenchmarkFailed: it takes too long.
        """
        wanted = self._count + 1
        _append(self._outbox, due, number)
        meter = Meter()
        with self._published:
            if not self._published.wait_for(lambda: self._count >= wanted, timeout=_LIMIT):
                raise BenchmarkFailed(f"{due.event_id(number)}: not within {_LIMIT:.0f} s")
        return meter.cost(1)

    def idle_cores(self) -> float:
        """Return how many cores are busy while there is nothing to do."""
        before = cpu_seconds()
        time.sleep(IDLE_SECONDS)
        return rounded((cpu_seconds() - before) / IDLE_SECONDS)


@contextmanager
def _running(outbox: Outbox) -> Iterator[_Running]:
    """Run a relay for a block."""
    running, stop = _Running(outbox), threading.Event()
    thread = threading.Thread(
        target=Relay(outbox).run,
        args=(Mode.CONTINUOUS,),
        kwargs={"stop": stop, "on_progress": running.on_progress},
        daemon=True,
    )
    thread.start()
    try:
        yield running
    finally:
        stop.set()
        thread.join()


def _check_waiting(outbox: Outbox, others: list[tuple[Stream, str]]) -> None:
    for stream, state in others:
        row = outbox.spark.sql(
            f"select count(*) as found from {outbox.tables.state} "
            f"where event_type = '{stream.name}' and state = '{state}'"
        ).first()
        if row is None or row["found"] != len(stream):
            raise BenchmarkFailed(f"{stream.name}: {len(stream)} should be {state}: {row}")
