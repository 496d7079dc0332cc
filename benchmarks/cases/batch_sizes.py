"""Whether anybody has to tune: the default batch beside others, for small events and large."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, as_documents
from benchmarks.figures import best, median, ratio, scaled
from benchmarks.messages import PAYLOAD_BYTES, Stream
from benchmarks.processes import in_own_process
from benchmarks.progress import say
from benchmarks.room import EVENT_BYTES, check_room

from delta_outbox.settings import RelaySettings

DEFAULT: Final = RelaySettings().batch_size
BATCHES: Final = (2_000, 10_000, 25_000, 50_000, 100_000)
BACKLOGS: Final = {
    # payload bytes, and how many at full size
    "300,000 of 512 bytes": (PAYLOAD_BYTES, 300_000),
    "30,000 of 512 bytes": (PAYLOAD_BYTES, 30_000),
    "30,000 of 20,000 bytes": (20_000, 30_000),
}


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of events.
        rounds: of each batch size, in turns.
    """
    batches = sorted({*BATCHES, DEFAULT})
    backlogs = {name: (of, scaled(count, size)) for name, (of, count) in BACKLOGS.items()}
    most = max(count * (EVENT_BYTES + 3 * of) for of, count in backlogs.values())
    check_room(most * rounds * len(batches))
    found: dict[str, dict[int, list[Cost]]] = {}
    with broker() as kafka:
        for number, (name, (payload, count)) in enumerate(backlogs.items()):
            plan = [
                (batch, Stream(name=f"bench.{number}-{at}", count=count, payload_bytes=payload))
                for at, batch in enumerate((DEFAULT, *batches * rounds))  # the first warms up
            ]
            with kafka.filled([stream for _, stream in plan]):
                costs = in_own_process(ours.drain_in_batches, kafka.bootstrap, plan)
            found[name] = {batch: [] for batch in batches}
            for (batch, _), cost in list(zip(plan, costs, strict=True))[1:]:
                found[name][batch].append(cost)
            say(f"{name}: { {batch: of[-1].rate for batch, of in found[name].items()} }")
    rates = {
        name: {batch: median([one.rate for one in of]) for batch, of in by_batch.items()}
        for name, by_batch in found.items()
    }
    return {
        "what": {"rounds": rounds, "default": DEFAULT},
        "rates": {
            name: {str(batch): one for batch, one in of.items()} for name, of in rates.items()
        },
        "best": {name: best(of) for name, of in rates.items()},
        "ratios": {name: ratio(of[DEFAULT], max(of.values())) for name, of in rates.items()},
        "costs": as_documents({f"{name}, default": of[DEFAULT] for name, of in found.items()}),
    }
