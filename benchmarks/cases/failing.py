"""What failures cost: one event in twenty fails the first time and is tried again."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.failing_kafka import fails
from benchmarks.figures import median, rate, ratio, rounded, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.results import BenchmarkFailed

EVENTS: Final = 1_000_000
KEYS: Final = 100_000  # a failed event holds up its key, and only that
BATCH: Final = 50_000


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: with failures and without.
    """
    count, keys = scaled(EVENTS, size), scaled(KEYS, size, at_least=100)
    publishers = {"clean": "kafka", "failing": "benchmarks.failing_kafka:FailingKafka"}
    rates = {}
    with broker() as kafka:
        for kind, publisher in publishers.items():
            streams = [
                kafka.topic(Stream(name=f"bench.{kind}-{n}", count=count, keys=keys))
                for n in range(rounds)
            ]
            seconds = in_own_process(drain, kafka.bootstrap, publisher, streams)
            for stream in streams:
                kafka.check(stream)
            rates[kind] = [rate(count, took) for took in seconds]
    failed = sum(fails(streams[0].event_id(n), 1) for n in range(count))
    return {
        "what": {
            "events": count,
            "keys": keys,
            "failing": rounded(failed / count),
            "rounds": rounds,
        },
        "rates": rates,
        "rate": {kind: median(found) for kind, found in rates.items()},
        "ratios": {"failing to clean": ratio(median(rates["failing"]), median(rates["clean"]))},
    }


def drain(bootstrap: str, publisher: str, streams: list[Stream]) -> list[float]:
    """Drain streams one after the other and return the seconds of each.

    Args:
        bootstrap: address of the broker.
        publisher: `type` of the destination.
        streams: of messages.

    Raises:
        BenchmarkFailed: not exactly the events that should fail have failed.
    """
    settings = {"bootstrap.servers": bootstrap, "topics": ["bench.*"]}
    with ours.outbox_for(publisher, settings) as outbox:
        ours.batches_of(outbox, BATCH)
        seconds = []
        for stream in streams:
            ours.append(outbox, stream)
            seconds.append(ours.drain(outbox, [stream]))
        ours.check(outbox, streams, attempts=1 if publisher == "kafka" else None)
        failed = {
            row["event_id"]
            for row in outbox.spark.sql(
                f"select event_id from {outbox.tables.transitions} where reason = 'failed'"
            ).collect()
        }
    ids = (stream.event_id(n) for stream in streams for n in range(len(stream)))
    expected = set() if publisher == "kafka" else {name for name in ids if fails(name, 1)}
    if failed != expected:
        raise BenchmarkFailed(f"{len(failed)} events failed, and {len(expected)} should have.")
    return seconds
