"""What a backlog costs: 1, 5 and 10 million pending events, with a driver of 2 GiB."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, Meter, as_documents
from benchmarks.figures import median, rounded, scaled, spread
from benchmarks.messages import Stream
from benchmarks.processes import MIB, Memory, in_own_process
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed

from delta_outbox.outbox import Outbox
from delta_outbox.relay import Mode, Relay, Summary

BACKLOGS: Final = (1_000_000, 5_000_000, 10_000_000)
BATCH: Final = 50_000
HEAP_LOOKS: Final = 10  # in the course of a drain


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: not used: each backlog takes minutes.
    """
    del rounds
    found, costs = {}, {}
    for backlog in BACKLOGS:
        count = scaled(backlog, size)
        with broker() as kafka:
            stream = kafka.topic(Stream(name="bench.backlog", count=count))
            found[str(count)], cost = in_own_process(drain, kafka.bootstrap, stream)
            costs[f"{count:,} pending"] = [cost]
            kafka.check(stream)
            say(f"{count:,} pending: {found[str(count)]}")
    columns = ("live_heap_mib", "heap_at_rest_mib", "driver_mib", "workers_mib")
    return {
        "what": {"driver_memory": ours.DRIVER_MEMORY, "batch": BATCH},
        "backlogs": found,
        "spread": {name: spread([one[name] for one in found.values()]) for name in columns},
        "costs": as_documents(costs),
    }


def drain(bootstrap: str, stream: Stream) -> tuple[dict[str, float], Cost]:
    """Drain a stream, and return rate and memory, and what it cost.

    Args:
        bootstrap: address of the broker.
        stream: of messages.

    Raises:
        BenchmarkFailed: not all of it was delivered.
    """
    memory = Memory()
    heap: list[float] = []
    with ours.outbox_to_kafka(bootstrap) as outbox:
        ours.batches_of(outbox, BATCH)
        ours.append(outbox, stream)
        step = max(1, len(stream) // HEAP_LOOKS)

        def look(summary: Summary) -> None:
            if summary.published >= step * (len(heap) + 1):
                heap.append(live_heap(outbox))

        with memory.watched():
            meter = Meter()
            summary = Relay(outbox).run(Mode.DRAIN, on_progress=look)
            cost = meter.cost(len(stream))
        at_rest = live_heap(outbox)
        if summary.published != len(stream) or summary.waiting:
            raise BenchmarkFailed(f"{len(stream)} events ended so: {summary.as_dict()}")
        # The full audit of ten million lives takes half an hour; other cases make it of a million.
        ours.check_states(outbox, [stream])
    looks = {"live_heap": heap, "driver": memory.driver, "workers": memory.workers}
    measured = {
        "rate": cost.rate,
        "seconds": cost.seconds,
        "heap_at_rest_mib": rounded(at_rest),
        **{f"{name}_mib": median(found) for name, found in looks.items()},
        **{f"{name}_most_mib": rounded(max(found)) for name, found in looks.items()},
        "jvm_most_mib": rounded(max(memory.jvm)),
    }
    return measured, cost


def live_heap(outbox: Outbox) -> float:
    """Return what of the driver's heap is in use after a collection, in MiB.

    Args:
        outbox: the store.
    """
    java = ours.jvm(outbox).java.lang
    java.System.gc()
    used = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    return float(used) / MIB
