"""Small drains in a warm process, with the default settings, beside the relay on PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, as_documents
from benchmarks.figures import median, ratio, scaled
from benchmarks.messages import Stream
from benchmarks.peers import skip_locked
from benchmarks.peers.postgres import postgres, server_version
from benchmarks.processes import in_own_process
from benchmarks.progress import say
from benchmarks.room import EVENT_BYTES, check_room

BACKLOGS: Final = (1_000, 10_000, 50_000, 100_000, 300_000, 1_000_000)
WARM: Final = 100_000  # events that the process has delivered before
THEIR_BATCHES: Final = (1_000, 5_000)  # the better one counts


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of events.
        rounds: of each backlog and contender.
    """
    counts = sorted({scaled(count, size) for count in BACKLOGS})
    check_room(EVENT_BYTES * sum(counts) * rounds)
    with broker() as kafka:
        warm = kafka.topic(Stream(name="bench.warm", count=scaled(WARM, size)))
        streams = [
            Stream(name=f"bench.small-{count}-{number}", count=count)
            for number in range(rounds)
            for count in counts
        ]
        with kafka.filled(streams):
            spent = in_own_process(drains, kafka.bootstrap, warm, streams)
        costs: dict[int, list[Cost]] = {count: [] for count in counts}
        for stream, cost in zip(streams, spent, strict=True):
            costs[len(stream)].append(cost)
        found = {count: median([one.rate for one in of]) for count, of in costs.items()}
        say(f"delta-outbox: {found}")
        theirs: dict[int, float] = {}
        with postgres() as conninfo:
            for count in counts:
                by_batch = (
                    [
                        skip_locked.rate_of(
                            kafka,
                            conninfo,
                            Stream(name=f"bench.table-{count}-{batch}-{number}", count=count),
                            batch_size=batch,
                            processes=os.cpu_count() or 1,
                        )
                        for number in range(rounds)
                    ]
                    for batch in THEIR_BATCHES
                )
                theirs[count] = max(map(median, by_batch))
            version = server_version(conninfo)
    say(f"skip locked: {theirs}")
    return {
        "what": {"rounds": rounds},
        "rates": {
            str(count): {"delta-outbox": found[count], "skip locked": theirs[count]}
            for count in counts
        },
        "ratios": {str(count): ratio(found[count], theirs[count]) for count in counts},
        "ahead_from": ahead_from(found, theirs),
        "costs": as_documents({f"{count:,} events": of for count, of in costs.items()}),
        "postgresql": version,
    }


def ahead_from(ours_: Mapping[int, float], theirs: Mapping[int, float]) -> int | None:
    """Return the backlog from which on we are ahead; None if we are not with the largest.

    Args:
        ours_: our rate, by backlog.
        theirs: that of somebody else, of the same backlogs.
    """
    found = None
    for count in sorted(ours_, reverse=True):
        if ours_[count] < theirs[count]:
            break
        found = count
    return found


def drains(bootstrap: str, warm: Stream, streams: list[Stream]) -> list[Cost]:
    """Drain streams one after the other and return what each cost.

    Args:
        bootstrap: address of the broker.
        warm: is drained before.
        streams: of messages.
    """
    with ours.outbox_to_kafka(bootstrap) as outbox:
        _, costs = ours.drain_each(outbox, [[stream] for stream in (warm, *streams)])
    return costs[1:]
