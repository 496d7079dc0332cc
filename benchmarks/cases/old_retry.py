"""What an event of long ago costs the batch that it is in: a retry, and replays, 30 days later."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, as_documents
from benchmarks.figures import median, ratio, rounded, scaled
from benchmarks.messages import Stream
from benchmarks.processes import MIB, in_own_process
from benchmarks.seeding import write_history

from delta_outbox.outbox import Outbox

PAST: Final = 10_000_000
FRESH: Final = 10_000
WITHOUT, RETRY, REPLAY = "without", "with an old retry", "with an old replay"


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: without and with a replay; of the retry there is one.
    """
    history = Stream(name="bench.history", count=scaled(PAST, size))
    old = Stream(name="bench.old", count=1, keys=1)
    fresh = [
        Stream(name=f"bench.fresh-{n}", count=scaled(FRESH, size)) for n in range(2 * rounds + 2)
    ]
    with broker() as kafka:
        for stream in (history, old, *fresh):
            kafka.topic(stream)
        found = in_own_process(drains, kafka.bootstrap, history, old, fresh)
        for stream in (old, *fresh):
            kafka.check(stream)
    costs = {name: [cost for cost, _ in runs] for name, runs in found.items()}
    seconds = {name: median([one.seconds for one in runs]) for name, runs in costs.items()}
    read = {name: median([mib for _, mib in runs]) for name, runs in found.items()}
    return {
        "what": {"past": len(history), "fresh": len(fresh[0]), "days": 30, "rounds": rounds},
        "costs": as_documents(costs),
        "seconds": seconds,
        "mib_read": read,
        "ratios": {
            name: {
                "seconds": ratio(seconds[name], seconds[WITHOUT]),
                "mib_read": ratio(read[name], read[WITHOUT]),
            }
            for name in (RETRY, REPLAY)
        },
    }


def drains(
    bootstrap: str, history: Stream, old: Stream, fresh: list[Stream]
) -> dict[str, list[tuple[Cost, float]]]:
    """Drain fresh events beside an old retry, alone, and beside an old replay.

    Args:
        bootstrap: address of the broker.
        history: what was delivered before.
        old: what failed at its beginning and is due now.
        fresh: of each drain; the first warms up, before there is a history.
    """
    found: dict[str, list[tuple[Cost, float]]] = {WITHOUT: [], RETRY: [], REPLAY: []}
    warm, with_retry, *others = fresh
    with ours.outbox_to_kafka(bootstrap) as outbox:
        ours.append(outbox, warm)
        ours.drain(outbox, [warm])
        write_history(outbox, history, now=datetime.now(UTC), waiting=old)
        found[RETRY].append(_measured(outbox, [with_retry, old]))
        for number, stream in enumerate(others):
            if number % 2:
                replayed = history.event_id(number)
                ours.replay(outbox, replayed)
                again = Stream(name=history.name, count=1)
                found[REPLAY].append(_measured(outbox, [stream], beside=[again]))
            else:
                found[WITHOUT].append(_measured(outbox, [stream]))
        ours.check(outbox, [history, *fresh])
        ours.check(outbox, [old], attempts=2)
    return found


def _measured(
    outbox: Outbox, streams: list[Stream], *, beside: Sequence[Stream] = ()
) -> tuple[Cost, float]:
    """Append what is not there yet, drain it, and return its cost and the MiB that it read."""
    ours.append(outbox, streams[0])
    before = _bytes_read(outbox)
    cost = ours.drain(outbox, [*streams, *beside])
    return cost, rounded((_bytes_read(outbox) - before) / MIB)


def _bytes_read(outbox: Outbox) -> int:
    """Return what the JVM has read from files so far."""
    statistics = ours.jvm(outbox).org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(one.getBytesRead() for one in statistics)
