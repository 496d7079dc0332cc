"""How long an event is under way: 200 a second, appended once per second, for ten minutes.

Producer and relay share one JVM, each with a session and an outbox of its own, as in a job that
does both. Under way is an event from the moment at which `append` returned, when it is durable, to
the moment at which the broker has taken it, by the broker's clock, which is this machine's.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, as_documents, cpu_seconds
from benchmarks.figures import drift, percentile, ratio, rounded, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process

from delta_outbox.outbox import Outbox
from delta_outbox.relay import Mode, Relay

PER_SECOND: Final = 200
SECONDS: Final = 600
ALONE: Final = 30  # appends at first, without a relay: what the producer takes by itself
WINDOW: Final = 10  # appends whose median is a point of the course
_LANDED: Final = 120.0  # seconds that the last events are given


@dataclass(frozen=True, kw_only=True)
class Appended:
    """One append of the producer.

    Args:
        called: seconds since 1970.
        returned: seconds since 1970.
    """

    called: float
    returned: float


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the duration.
        rounds: not used: it takes minutes.
    """
    del rounds
    alone, seconds = scaled(ALONE, size, at_least=5), scaled(SECONDS, size, at_least=15)
    appends = alone + seconds
    with broker() as kafka:
        stream = kafka.topic(
            Stream(name="bench.trickle", count=PER_SECOND * appends),
            message_timestamp_type="LogAppendTime",
        )
        made, measured = in_own_process(trickle, kafka.bootstrap, stream, alone, appends)
        kafka.check(stream)
        arrived = kafka.instants(stream)
    found = latencies(made[alone:], arrived, first=alone * PER_SECOND)
    cpu = measured["cpu"]["together"] * seconds
    costs = {
        name: [Cost(events=PER_SECOND * seconds, seconds=waited, cpu_seconds=cpu)]
        for name, waited in found["seconds"].items()
    }
    return {
        "what": {"per_second": PER_SECOND, "seconds": seconds},
        **found,
        **measured,
        "costs": as_documents(costs),
    }


def latencies(
    made: Sequence[Appended], arrived: Mapping[int, float], *, first: int
) -> dict[str, Any]:
    """Return how long events were under way.

    Args:
        made: the appends, in order, of `PER_SECOND` events each.
        arrived: when the broker took each event, by its number.
        first: number of the first event of the first append.
    """
    from_return: list[float] = []
    from_call: list[float] = []
    for place, append in enumerate(made):
        for number in range(first + place * PER_SECOND, first + (place + 1) * PER_SECOND):
            from_return.append(max(0.0, arrived[number] - append.returned))
            from_call.append(arrived[number] - append.called)
    size = WINDOW * PER_SECOND
    course = [
        rounded(statistics.median(from_call[at : at + size]))
        for at in range(0, len(from_call), size)
    ]
    return {
        "seconds": {"p50": percentile(from_return, 0.5), "p95": percentile(from_return, 0.95)},
        "with_the_append": {
            "p50": percentile(from_call, 0.5),
            "p95": percentile(from_call, 0.95),
        },
        "course": course,
        "drift": drift(course) if len(course) >= 3 else None,
        "late_appends": sum(append.returned - append.called > 1 for append in made),
    }


def trickle(
    bootstrap: str, stream: Stream, alone: int, appends: int
) -> tuple[list[Appended], dict[str, Any]]:
    """Append once per second beside a relay, and return when, and what it cost.

    Args:
        bootstrap: address of the broker.
        stream: of messages.
        alone: appends before the relay starts.
        appends: all of them.
    """
    with ours.outbox_to_kafka(bootstrap) as outbox:
        producer = Outbox(
            outbox.spark, settings=outbox.settings, statements=outbox.statements, home=outbox.home
        )
        stop = threading.Event()
        relay = Relay(outbox)
        thread = threading.Thread(
            target=relay.run, args=(Mode.CONTINUOUS,), kwargs={"stop": stop}, daemon=True
        )
        try:
            made, by_itself = _produce(producer, stream, range(alone))
            thread.start()
            rest, both = _produce(producer, stream, range(alone, appends))
            _wait_until_published(producer, stream)
        finally:
            stop.set()
            if thread.ident is not None:
                thread.join()
        measured = {
            "cpu": {
                "producer_alone": by_itself,
                "together": both,
                "share_of_the_producer": ratio(by_itself, both),
            },
            "log": _log_files(outbox),
        }
        ours.check(outbox, [stream])
        producer.close()
    return made + rest, measured


def _produce(producer: Outbox, stream: Stream, numbers: range) -> tuple[list[Appended], float]:
    """Append at every full second; return when, and the cores that were busy meanwhile."""
    made = []
    began, cpu = time.time(), cpu_seconds()
    for place, number in enumerate(numbers):
        rows = stream.arrow(first=number * PER_SECOND, count=PER_SECOND)
        time.sleep(max(0.0, began + place - time.time()))
        called = time.time()
        producer.append(rows).raise_if_rejected()
        made.append(Appended(called=called, returned=time.time()))
    time.sleep(max(0.0, began + len(numbers) - time.time()))
    return made, rounded((cpu_seconds() - cpu) / (time.time() - began))


def _wait_until_published(producer: Outbox, stream: Stream) -> None:
    table = producer.tables.transitions
    deadline = time.monotonic() + _LANDED
    while time.monotonic() < deadline:
        row = producer.spark.sql(
            f"select count(*) as published from {table} where to_state = 'PUBLISHED'"
        ).first()
        if row is not None and row["published"] >= len(stream):
            return
        time.sleep(1)


def _log_files(outbox: Outbox) -> dict[str, dict[str, int]]:
    """Return what lies of each log in the end."""
    found = {}
    assert outbox.home is not None
    for name in ("outbox_events", "outbox_transitions", "outbox_state"):
        folder = next(outbox.home.warehouse.rglob(name))
        commits = folder / "_delta_log"
        found[name] = {
            "files": sum(1 for _ in folder.rglob("*.parquet")) - _count(commits, "*.parquet"),
            "commits": _count(commits, "*[0-9].json"),
            "checkpoints": _count(commits, "*.checkpoint*.parquet"),
        }
    return found


def _count(folder: Any, pattern: str) -> int:
    return sum(1 for _ in folder.glob(pattern))
