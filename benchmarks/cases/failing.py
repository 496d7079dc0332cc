"""What failures cost: one event in twenty fails the first time and is tried again."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, as_documents
from benchmarks.failing_kafka import fails
from benchmarks.figures import median, ratio, rounded, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.results import BenchmarkFailed

EVENTS: Final = 1_000_000
KEYS: Final = 100_000  # a failed event blocks its key, and only that
BATCH: Final = 50_000


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: with failures and without.
    """
    count, keys = scaled(EVENTS, size), scaled(KEYS, size, at_least=100)
    publishers = {"clean": "kafka", "failing": "benchmarks.failing_kafka:FailingKafka"}
    costs: dict[str, list[Cost]] = {}
    with broker() as kafka:
        for kind, publisher in publishers.items():
            streams = [
                kafka.topic(Stream(name=f"bench.{kind}-{n}", count=count, keys=keys))
                for n in range(rounds)
            ]
            costs[kind], failed = in_own_process(drain, kafka.bootstrap, publisher, streams)
            for stream in streams:
                kafka.check(stream)
    rates = {kind: [one.rate for one in found] for kind, found in costs.items()}
    return {
        "what": {
            "events": count,
            "keys": keys,
            "failing": rounded(failed / (count * rounds)),
            "rounds": rounds,
        },
        "rates": rates,
        "rate": {kind: median(found) for kind, found in rates.items()},
        "ratios": {"failing to clean": ratio(median(rates["failing"]), median(rates["clean"]))},
        "costs": as_documents(costs),
    }


def drain(bootstrap: str, publisher: str, streams: list[Stream]) -> tuple[list[Cost], int]:
    """Drain streams one after the other; return what each cost, and how many events failed.

    An event that was released unsent, behind one of its key that failed, is past its first
    attempt then, so a few of those that should fail do not.

    Args:
        bootstrap: address of the broker.
        publisher: `type` of the destination.
        streams: of messages.

    Raises:
        BenchmarkFailed: an event failed that should not, or failed twice, or none did.
    """
    settings = {"bootstrap.servers": bootstrap, "topics": ["bench.*"]}
    with ours.outbox_for(publisher, settings) as outbox:
        ours.batches_of(outbox, BATCH)
        costs = []
        for stream in streams:
            ours.append(outbox, stream)
            costs.append(ours.drain(outbox, [stream]))
        ours.check(outbox, streams, attempts=1 if publisher == "kafka" else None)
        failed = [
            row["event_id"]
            for row in outbox.spark.sql(
                f"select event_id from {outbox.tables.transitions} where reason = 'failed'"
            ).collect()
        ]
    may_fail = publisher != "kafka"
    wrong = [name for name in failed if not (may_fail and fails(name, 1))]
    if wrong or len(failed) != len(set(failed)) or may_fail != bool(failed):
        raise BenchmarkFailed(f"{len(failed)} events failed, {len(wrong)} of them wrongly.")
    return costs, len(failed)
