"""Large payloads, all of one commit: 10 GB of them with a driver of 2 GiB, read in both ways.

The free disk is looked at first. What arrives is checked by its digest, which the event carries.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from benchmarks import ours
from benchmarks.figures import rounded, scaled
from benchmarks.messages import Stream
from benchmarks.processes import MIB, Memory, in_own_process
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed
from benchmarks.room import check_room

from delta_outbox.outbox import Outbox
from delta_outbox.publishers.protocol import Delivered, Rejected, Result
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.relay import Mode, Relay

KINDS: Final[Mapping[str, tuple[int, int]]] = {  # payload bytes, and how many at full size
    "900 KB": (900_000, 11_111),
    "100 KB": (100_000, 100_000),
}
ROOM: Final = 2.5  # times the payloads: the log, and what Spark writes down between two stages
DIGEST: Final = "sha256"


class Checking:
    """Take what has the digest that its event says, and keep nothing."""

    ordered: ClassVar[bool] = True

    def open(self, settings: Mapping[str, object]) -> None:
        """Need nothing."""

    def publish(self, events: EventBatch) -> list[Result]:
        """Deliver what is whole."""
        return [
            Delivered()
            if hashlib.sha256(event.payload).hexdigest() == (event.headers or {}).get(DIGEST)
            else Rejected(error="its payload is another one")
            for event in events
        ]

    def close(self) -> None:
        """Have nothing to release."""


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events.
        rounds: not used: each drain takes minutes.

    Raises:
        BenchmarkFailed: the disk has no room, or not all of it was delivered.
    """
    del rounds
    check_room(ROOM * max(scaled(count, size) * each for each, count in KINDS.values()))
    found: dict[str, Any] = {}
    for name, (each, count) in KINDS.items():
        for is_refreshed in (False, True):
            way = "Spark" if is_refreshed else "files"
            one = in_own_process(drain, each, scaled(count, size), is_refreshed=is_refreshed)
            found[f"{name}, {way}"] = one
            say(f"{name}, by {way}: {one}")
    return {"what": {"driver_memory": ours.DRIVER_MEMORY}, "drains": found}


def drain(each: int, count: int, *, is_refreshed: bool) -> dict[str, Any]:
    """Append and drain events, and return rate and memory.

    Args:
        each: bytes of a payload, which do not compress.
        count: how many.
        is_refreshed: the projection has seen them, so that Spark reads them and not the workers.

    Raises:
        BenchmarkFailed: not all of it was delivered.
    """
    stream = Stream(name="bench.large", count=count)
    memory = Memory()
    with ours.outbox_for(f"{__name__}:Checking", {}) as outbox:
        _append(outbox, stream, each)
        if is_refreshed:
            outbox.refresh()
        with memory.watched():
            started = time.perf_counter()
            summary = Relay(outbox).run(Mode.DRAIN)
            seconds = time.perf_counter() - started
        if summary.published != count or summary.waiting or summary.dead:
            raise BenchmarkFailed(f"{count} events ended so: {summary.as_dict()}")
        ours.check(outbox, [stream])
    return {
        "events": count,
        "gigabytes": rounded(each * count / 1e9),
        "seconds": rounded(seconds),
        "mib_per_second": rounded(each * count / MIB / seconds),
        "jvm_most_mib": rounded(max(memory.jvm)),
        "driver_most_mib": rounded(max(memory.driver)),
        "worker_most_mib": rounded(max(memory.worker)),
    }


def _append(outbox: Outbox, stream: Stream, each: int) -> None:
    rows = outbox.spark.range(0, stream.count, 1, 2).selectExpr(
        f"concat('{stream.name}-', lpad(string(id), 12, '0')) as event_id",
        # The last block of a cipher that chains them is full of padding: it is cut off.
        f"substr(aes_encrypt(repeat('x', {each}), md5(string(id)), 'CBC', 'PKCS', "
        f"unhex(repeat('00', 16))), 1, {each}) as payload",
        "id as ordinal",
    )
    rows.selectExpr(
        "*",
        f"'{stream.name}' as event_type",
        f"map('{DIGEST}', sha2(payload, 256)) as headers",
    ).write.format("delta").mode("append").saveAsTable(outbox.tables.events)
