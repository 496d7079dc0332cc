"""What a process has to learn: its first drain beside its third, and beside small batches.

A process drains 300,000 events three times in batches of 50,000 and once in batches of 10,000;
another one drains a million three times in batches of 100,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import Broker, broker
from benchmarks.costs import Cost, as_documents, rates
from benchmarks.figures import ratio, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.progress import say
from benchmarks.room import EVENT_BYTES, check_room

FEWER: Final = 300_000
EVENTS: Final = 1_000_000
SMALL_BATCH: Final = 10_000
PLANS: Final = (
    # what is measured, how many events at full size, of how many a batch is
    (
        ("first of 300,000", FEWER, 50_000),
        ("second of 300,000", FEWER, 50_000),
        ("third of 300,000", FEWER, 50_000),
        ("300,000 in small batches", FEWER, SMALL_BATCH),
    ),
    (
        ("first of a million", EVENTS, 100_000),
        ("second of a million", EVENTS, 100_000),
        ("third of a million", EVENTS, 100_000),
    ),
)
"""What each process drains, in order."""


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of events.
        rounds: processes of each kind.
    """
    check_room(EVENT_BYTES * scaled(3 * EVENTS, size))
    costs: dict[str, list[Cost]] = {name: [] for plan in PLANS for name, _, _ in plan}
    with broker() as kafka:
        for number in range(rounds):
            for process, plan in enumerate(PLANS):
                streams = [
                    Stream(name=f"bench.{number}-{process}-{at}", count=scaled(count, size))
                    for at, (_, count, _) in enumerate(plan)
                ]
                found = _drained(kafka, streams, [batch for _, _, batch in plan])
                for (name, _, _), cost in zip(plan, found, strict=True):
                    costs[name].append(cost)
                    say(f"{name}: {cost}")
    drains = {name: {"events": of[0].events, **rates(of)} for name, of in costs.items()}
    return {
        "what": {"rounds": rounds, "small_batch": SMALL_BATCH},
        "drains": drains,
        "ratios": {
            "first to third": ratio(
                drains["first of 300,000"]["rate"], drains["third of 300,000"]["rate"]
            )
        },
        "costs": as_documents(costs),
    }


def _drained(kafka: Broker, streams: Sequence[Stream], batches: Sequence[int]) -> list[Cost]:
    for stream in streams:
        kafka.topic(stream)
    costs = in_own_process(drains_of, kafka.bootstrap, streams, batches)
    for stream in streams:
        kafka.check(stream)
        kafka.drop(stream)
    return costs


def drains_of(bootstrap: str, streams: Sequence[Stream], batches: Sequence[int]) -> list[Cost]:
    """Drain streams one after the other and return what each cost.

    Args:
        bootstrap: address of the broker.
        streams: of messages.
        batches: how many events a batch has, for each stream.
    """
    costs = []
    with ours.outbox_to_kafka(bootstrap) as outbox:
        for stream, batch in zip(streams, batches, strict=True):
            ours.batches_of(outbox, batch)
            ours.append(outbox, stream)
            costs.append(ours.drain(outbox, [stream]))
        ours.check(outbox, streams)
    return costs
