"""What it costs to isolate destinations: events for one, and as many for two at one broker."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import Broker, broker
from benchmarks.costs import Cost, as_documents
from benchmarks.figures import median, rate, ratio, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process

EVENTS: Final = 500_000
BATCH: Final = 50_000
SECOND: Final = "second"
_STAMPED: Final = {"message_timestamp_type": "LogAppendTime"}


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: of each, after one that warms up.
    """
    count = scaled(EVENTS, size)
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[Cost]] = {}
    with broker() as kafka:
        for kind, shares in (("one", ["bench.first"]), ("two", ["bench.first", f"bench.{SECOND}"])):
            drains = [
                [
                    kafka.topic(
                        Stream(name=f"{name}-{kind}-{number}", count=count // len(shares)),
                        **_STAMPED,
                    )
                    for name in shares
                ]
                for number in range(1 + rounds)
            ]
            starts, spent = in_own_process(drain, kafka.bootstrap, drains)
            costs[kind] = spent[1:]
            rates[kind] = [
                rate(count, _last(kafka, streams) - start)
                for start, streams in list(zip(starts, drains, strict=True))[1:]
            ]
    medians = {kind: median(found) for kind, found in rates.items()}
    return {
        "what": {"events": count, "batch": BATCH, "rounds": rounds},
        "rates": rates,
        "rate": medians,
        "ratios": {"two to one": ratio(medians["two"], medians["one"])},
        "costs": as_documents(costs),
    }


def _last(kafka: Broker, streams: list[Stream]) -> float:
    """Return when the last event arrived, in seconds since 1970, if all of them are right."""
    for stream in streams:
        kafka.check(stream)
    return max(max(kafka.instants(stream).values()) for stream in streams)


def drain(bootstrap: str, drains: list[list[Stream]]) -> tuple[list[float], list[Cost]]:
    """Drain streams, those of a list side by side; return when each began, and what it cost.

    Args:
        bootstrap: address of the broker.
        drains: what is open at once; a second stream has a destination of its own.

    Returns:
        Seconds since 1970.
    """
    same = "kafka", ours.kafka_settings(bootstrap)
    with ours.outbox_to_kafka(bootstrap, others={SECOND: same}) as outbox:
        ours.batches_of(outbox, BATCH)
        if len(drains[0]) > 1:
            ours.add_policy(outbox, f"bench.{SECOND}*", destination=SECOND)
        return ours.drain_each(outbox, drains)
