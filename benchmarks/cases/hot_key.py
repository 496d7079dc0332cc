"""What a hot key costs the others: 100,000 ordered events of one key among a million."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import Broker, broker
from benchmarks.costs import Cost, as_documents
from benchmarks.figures import rate, scaled, with_and_without
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process

OTHERS: Final = 1_000_000
HOT: Final = 100_000
BATCH: Final = 50_000
_STAMPED: Final = {"message_timestamp_type": "LogAppendTime"}


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: with the hot key and without, in turns.
    """
    rates: dict[str, list[float]] = {"without": [], "with": []}
    costs: dict[str, list[Cost]] = {"without": [], "with": []}
    with broker() as kafka:
        drains = []
        for number in range(rounds):
            others = [
                kafka.topic(
                    Stream(name=f"bench.{name}-{number}", count=scaled(OTHERS, size)), **_STAMPED
                )
                for name in ("alone", "beside")
            ]
            hot = kafka.topic(
                Stream(name=f"bench.hot-{number}", count=scaled(HOT, size), keys=1), **_STAMPED
            )
            drains += [[others[0]], [others[1], hot]]
        starts, spent = in_own_process(drain, kafka.bootstrap, drains)
        for start, cost, streams in zip(starts, spent, drains, strict=True):
            for stream in streams:
                kafka.check(stream)
            kind = "without" if len(streams) == 1 else "with"
            rates[kind].append(_rate_of(kafka, streams[0], since=start))
            costs[kind].append(cost)
    what = {"others": scaled(OTHERS, size), "hot": scaled(HOT, size), "rounds": rounds}
    return {"what": what, **with_and_without(rates), "costs": as_documents(costs)}


def _rate_of(kafka: Broker, stream: Stream, *, since: float) -> float:
    """Return how fast the others arrived, whatever else was delivered meanwhile."""
    return rate(len(stream), max(kafka.instants(stream).values()) - since)


def drain(bootstrap: str, drains: list[list[Stream]]) -> tuple[list[float], list[Cost]]:
    """Drain streams, those of a list side by side; return when each began, and what it cost.

    Args:
        bootstrap: address of the broker.
        drains: what is open at once.

    Returns:
        Seconds since 1970.
    """
    with ours.outbox_to_kafka(bootstrap) as outbox:
        ours.batches_of(outbox, BATCH)
        return ours.drain_each(outbox, drains)
