"""What a destination that hangs costs the others: a webhook endpoint beside a Kafka, no shared key.

It takes connections and never answers, and its requests are given all the time that there is.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.figures import rate, scaled, with_and_without
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from tests.publishers.http_server import OK, SECRET, RawServer, read_request

from delta_outbox.api import Outbox
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.summary import Summary

EVENTS: Final = 200_000
HANGING: Final = 20_000  # of the dead destination, in the same commits
BATCH: Final = 10_000
LEASE: Final = 1800  # seconds; its half is the time that a claim may take to be published
TIMEOUT: Final = 300  # seconds that a request may take, the most that there is
DEAD: Final = "dead"
_STAMPED: Final = {"message_timestamp_type": "LogAppendTime"}


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of events.
        rounds: beside what hangs and without it, in turns, after one that warms up.
    """
    count, hanging = scaled(EVENTS, size), scaled(HANGING, size, at_least=100)
    kinds = ["without", *["without", "with"] * rounds]
    rates: dict[str, list[float]] = {"without": [], "with": []}
    with broker() as kafka:
        drains = []
        for number, kind in enumerate(kinds):
            well = kafka.topic(Stream(name=f"bench.well-{number}", count=count), **_STAMPED)
            dead = Stream(name=f"{DEAD}.{number}", count=hanging)
            drains.append([well, dead] if kind == "with" else [well])
        starts = in_own_process(drain, kafka.bootstrap, drains)
        for kind, start, (well, *_) in list(zip(kinds, starts, drains, strict=True))[1:]:
            kafka.check(well)
            rates[kind].append(rate(count, max(kafka.instants(well).values()) - start))
    what = {"events": count, "hanging": hanging, "batch": BATCH, "rounds": rounds}
    return {"what": what, **with_and_without(rates)}


def drain(bootstrap: str, drains: list[list[Stream]]) -> list[float]:
    """Deliver streams, those of a list side by side, and return when each began.

    What hangs is answered once the rest is on record, so that it ends as well.

    Args:
        bootstrap: address of the broker.
        drains: what is open at once; first what goes to the broker.

    Returns:
        Seconds since 1970.
    """
    starts = []
    answers = threading.Event()

    def hang(connection: socket.socket, _: int) -> None:
        while read_request(connection):
            answers.wait()
            connection.sendall(OK)

    with contextlib.ExitStack() as stack:
        url = stack.enter_context(RawServer(hang)).url
        webhooks = "http", {"url": url, "secrets": [SECRET], "timeout_seconds": TIMEOUT}
        outbox = stack.enter_context(ours.outbox_to_kafka(bootstrap, others={DEAD: webhooks}))
        ours.batches_of(outbox, BATCH)
        ours.add_policy(outbox, f"{DEAD}.*", destination=DEAD, lease_seconds=str(LEASE))
        for streams in drains:
            answers.clear()
            ours.append(outbox, *streams)
            starts.append(time.time())
            _deliver(outbox, len(streams[0]), answers)
            if len(streams) > 1:
                Relay(outbox).run(Mode.DRAIN)
        ours.check(outbox, [stream for streams in drains for stream in streams], attempts=None)
    return starts


def _deliver(outbox: Outbox, wanted: int, answers: threading.Event) -> None:
    """Run a relay until so many events are published, and then let what hangs be answered."""
    stop = threading.Event()

    def look(found: Summary) -> None:
        if found.published >= wanted:
            answers.set()
            stop.set()

    Relay(outbox).run(Mode.CONTINUOUS, stop=stop, on_progress=look)
