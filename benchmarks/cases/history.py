"""What the past costs: the same operations on an empty log and on one with millions delivered."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.figures import median, ratio, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.results import BenchmarkFailed
from benchmarks.seeding import write_history

from delta_outbox.outbox import Outbox
from delta_outbox.event_life import show_event
from delta_outbox.operations.inspection import (
    counts_and_age,
    freshness,
    relays_alive,
)
from delta_outbox.dbt import BUILD, check_result, run_dbt

PAST: Final = 10_000_000
EVENTS: Final = 100_000
APPENDED: Final = 1000


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: of each operation.
    """
    past, count = scaled(PAST, size), scaled(EVENTS, size)
    with broker() as kafka:
        found = {}
        for name, before in (("none", 0), ("long", past)):
            streams = [
                kafka.topic(Stream(name=f"bench.{name}-{n}", count=count)) for n in range(rounds)
            ]
            own = kafka.topic(Stream(name=f"bench.{name}-own", count=APPENDED * rounds))
            warm = kafka.topic(Stream(name=f"bench.{name}-warm", count=min(ours.WARM_UP, count)))
            found[name] = in_own_process(operations, kafka.bootstrap, before, streams, own, warm)
            for stream in (*streams, own, warm):
                kafka.check(stream)
    medians = {
        name: {operation: median(seconds) for operation, seconds in measured.items()}
        for name, measured in found.items()
    }
    return {
        "what": {"past": past, "events": count, "appended": APPENDED, "rounds": rounds},
        "seconds": medians,
        "all": found,
        "ratios": {
            name: ratio(medians["long"][name], medians["none"][name]) for name in medians["none"]
        },
    }


def operations(
    bootstrap: str, past: int, streams: list[Stream], own: Stream, warm: Stream
) -> dict[str, list[float]]:
    """Measure each operation once per stream, in seconds.

    Args:
        bootstrap: address of the broker.
        past: events that were delivered before.
        streams: what is drained.
        own: what is appended through the project's own `append`.
        warm: what is drained before anything is measured.
    """
    seconds: dict[str, list[float]] = {}

    def measure(name: str, call: Callable[[], object]) -> None:
        started = time.perf_counter()
        call()
        seconds.setdefault(name, []).append(time.perf_counter() - started)

    with ours.outbox_to_kafka(bootstrap) as outbox:
        if past:
            history = Stream(name="bench.history", count=past)
            write_history(outbox, history, now=datetime.now(UTC))
        ours.append(outbox, warm)
        ours.drain(outbox, [warm])
        build(outbox)  # the first has to create what the later ones find
        for number, stream in enumerate(streams):
            ours.append(outbox, stream)
            measure("refresh", outbox.refresh)
            seconds.setdefault("drain", []).append(ours.drain(outbox, [stream]).seconds)
            measure("dbt build", partial(build, outbox))
            measure("status", partial(status, outbox))
            measure("show", partial(show_one, outbox, stream.event_id(0)))
            measure("append", partial(append_some, outbox, own, number))
            ours.drain(outbox, [Stream(name=own.name, count=APPENDED)])
        ours.check(outbox, [*streams, own, warm])
    return seconds


def build(outbox: Outbox) -> None:
    """Do what `dbt build` does."""
    assert outbox.home is not None
    check_result(run_dbt(BUILD, home=outbox.home, schema=outbox.tables.schema))


def status(outbox: Outbox) -> None:
    """Do what `outbox status` does."""
    outbox.refresh()
    counts_and_age(outbox)
    freshness(outbox)
    relays_alive(outbox)
    outbox.policy_status()


def show_one(outbox: Outbox, event_id: str) -> None:
    """Do what `outbox show` does.

    Raises:
        BenchmarkFailed: there is no such event.
    """
    outbox.refresh()
    if show_event(outbox, event_id) is None:
        raise BenchmarkFailed(f"{event_id} is not shown.")


def append_some(outbox: Outbox, stream: Stream, number: int) -> None:
    """Append a share of a stream as `outbox append` does.

    Args:
        outbox: the store.
        stream: of messages.
        number: of the share.
    """
    rows = stream.arrow(first=number * APPENDED, count=APPENDED)
    outbox.append(rows).raise_if_rejected()
