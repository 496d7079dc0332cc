"""How fast each other destination is served: 100,000 events each, on a real server.

SQS is moto's, a server for tests in Python that looks through the whole of a FIFO queue for each
message: it says what our side can do at least, and it gets a hundredth of the events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from benchmarks import ours
from benchmarks.costs import Cost, rates
from benchmarks.destinations import DESTINATIONS, NOT_THERE
from benchmarks.figures import scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed

from delta_outbox.outbox import Outbox

ROUTE: Final = "bench-events"
EVENTS: Final = 100_000
FEWER: Final = {"sqs": 1_000}


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: of each destination, after one of a tenth that warms up.
    """
    found = in_own_process(serve_all, size, rounds)
    return {"what": {"rounds": rounds}, "destinations": found}


def serve_all(size: float, rounds: int) -> dict[str, dict[str, Any]]:
    """Serve one destination after the other from one outbox, and return what was found of each.

    Args:
        size: factor of the number of events.
        rounds: of each destination.
    """
    found: dict[str, dict[str, Any]] = {}
    shares = {name: _shares(name, size, rounds) for name in DESTINATIONS}
    stream = Stream(name=ROUTE, count=sum(map(sum, shares.values())))
    first = 0  # of what the next destination gets: so many have been delivered
    with ours.outbox_for("null", {}) as outbox:
        for name, serve in DESTINATIONS.items():
            try:
                with serve(ROUTE) as destination:
                    ours.deliver_to(outbox, destination.type, destination.settings)
                    costs = _drain(outbox, stream, first, shares[name])
                    end = first + sum(shares[name])
                    _check(stream, range(first, end), destination.received())
            except NOT_THERE as error:
                found[name] = {"not_there": str(error)}
            else:
                first = end
                found[name] = {**rates(costs), "events": shares[name][-1]}
            say(f"{name}: {found[name]}")
        ours.check(outbox, [replace(stream, count=first)])
    return found


def _shares(name: str, size: float, rounds: int) -> list[int]:
    count = scaled(FEWER.get(name, EVENTS), size, at_least=200)
    return [max(100, count // 10), *[count] * rounds]


def _drain(outbox: Outbox, stream: Stream, first: int, shares: list[int]) -> list[Cost]:
    """Deliver a stream share by share and return what each cost but the first."""
    costs = []
    for count in shares:
        rows = stream.frame(outbox.spark, first=first, count=count)
        rows.write.format("delta").mode("append").saveAsTable(outbox.tables.events)
        costs.append(ours.drain(outbox, [replace(stream, count=count)]))
        first += count
    return costs[1:]


def _check(stream: Stream, numbers: range, received: Iterator[str]) -> None:
    """Demand that a destination holds some messages of a stream, each of them once."""
    copies = Counter(stream.number(event_id) for event_id in received)
    if copies.keys() != set(numbers) or copies.total() != len(numbers):
        raise BenchmarkFailed(
            f"{len(copies)} of {len(numbers)} events arrived, in {copies.total()} copies."
        )
