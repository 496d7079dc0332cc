"""What a process has to learn: its first drain beside its third, and beside small batches.

A process drains 300,000 events three times in batches of 50,000 and once in batches of 10,000;
another one drains a million three times in batches of 100,000.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
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
                batches = [batch for _, _, batch in plan]
                drains = list(zip(batches, streams, strict=True))
                with kafka.filled(streams):
                    found = in_own_process(ours.drain_in_batches, kafka.bootstrap, drains)
                for (name, _, _), cost in zip(plan, found, strict=True):
                    costs[name].append(cost)
                    say(f"{name}: {cost}")
    by_name = {name: {"events": of[0].events, **rates(of)} for name, of in costs.items()}
    return {
        "what": {"rounds": rounds, "small_batch": SMALL_BATCH},
        "drains": by_name,
        "ratios": {
            "first to third": ratio(
                by_name["first of 300,000"]["rate"], by_name["third of 300,000"]["rate"]
            )
        },
        "costs": as_documents(costs),
    }
