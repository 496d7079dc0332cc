"""How fast each other destination is served: 100,000 events each, on a real server.

SQS is moto's, a server for tests in Python: it says what our side can do at least, and it gets a
tenth of the events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from benchmarks import ours
from benchmarks.destinations import DESTINATIONS, NOT_THERE
from benchmarks.figures import median, rate, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed

ROUTE: Final = "bench-events"
EVENTS: Final = 100_000
FEWER: Final = {"sqs": 10_000}


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: of each destination, after one of a tenth that warms up.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, serve in DESTINATIONS.items():
        count = scaled(FEWER.get(name, EVENTS), size, at_least=200)
        shares = [max(100, count // 10), *[count] * rounds]
        stream = Stream(name=ROUTE, count=sum(shares))
        try:
            with serve(ROUTE) as destination:
                given = destination.type, destination.settings
                seconds = in_own_process(drain, *given, stream, shares)
                _check(stream, destination.received())
        except NOT_THERE as error:
            found[name] = {"not_there": str(error)}
        else:
            rates = [rate(count, took) for took in seconds]
            found[name] = {"rate": median(rates), "rates": rates, "events": count}
        say(f"{name}: {found[name]}")
    return {"what": {"rounds": rounds}, "destinations": found}


def drain(
    type_: str, settings: Mapping[str, object], stream: Stream, shares: list[int]
) -> list[float]:
    """Drain a stream share by share and return the seconds of each but the first.

    Args:
        type_: of the publisher.
        settings: of the publisher.
        stream: of messages.
        shares: how many at a time, all of them together.
    """
    seconds, first = [], 0
    with ours.outbox_for(type_, settings) as outbox:
        for count in shares:
            rows = stream.frame(outbox.spark, first=first, count=count)
            rows.write.format("delta").mode("append").saveAsTable(outbox.tables.events)
            seconds.append(ours.drain(outbox, [replace(stream, count=count)]))
            first += count
        ours.check(outbox, [stream])
    return seconds[1:]


def _check(stream: Stream, received: Iterator[str]) -> None:
    """Demand that a destination holds a stream, each event once."""
    copies = Counter(stream.number(event_id) for event_id in received)
    if len(copies) != len(stream) or copies.total() != len(stream):
        raise BenchmarkFailed(
            f"{len(copies)} of {len(stream)} events arrived, in {copies.total()} copies."
        )
