"""How long commands take that start a Spark of their own, as ratios to a bare PySpark in between.

Destination are files. The home has what the rounds before have delivered.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from benchmarks.bare import BARE, Timings, bare
from benchmarks.commands import EVENT_TYPE, KEYS, Commands, commands
from benchmarks.delivered import Delivered
from benchmarks.figures import scaled
from benchmarks.results import BenchmarkFailed
from benchmarks.room import EVENT_BYTES, check_room

MANY: Final = 50_000  # events
STATUS, NOTHING = "outbox status", "outbox relay --once, nothing to do"
ONE, FIFTY = "outbox relay --drain, one event", "outbox relay --drain, 50,000 events"


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the number of events, where they are many.
        rounds: of each.
    """
    many = scaled(MANY, size)
    check_room(EVENT_BYTES * many * rounds)
    timings = Timings()
    with commands() as home, bare() as pyspark:
        given = 0
        for _ in range(rounds):
            timings.note(BARE, pyspark.seconds())
            timings.note(STATUS, home.outbox("status")[0])
            timings.note(NOTHING, _relay(home, "--once", wanted=0))
            for name, count in ((ONE, 1), (FIFTY, many)):
                append(home, first=given, count=count)
                given += count
                timings.note(name, _relay(home, "--drain", wanted=count))
        Delivered(home.home.delivered).check(given)
        home.check_published(given)
    return {"what": {"many": many, "rounds": rounds}, **timings.as_dict()}


def append(home: Commands, *, first: int, count: int) -> None:
    """Append events whose numbers follow on each other, as `outbox append` does.

    Args:
        home: of the outbox.
        first: the first number.
        count: how many.

    Raises:
        BenchmarkFailed: not all of them were appended.
    """
    file = Path(home.home.root.with_name("events.jsonl"))
    with file.open("w", encoding="utf-8") as lines:
        for number in range(first, first + count):
            event = {
                "event_id": f"event-{number:09}",
                "event_type": EVENT_TYPE,
                "ordering_key": f"key-{number % KEYS}",
                "payload": number,
            }
            lines.write(json.dumps(event) + "\n")
    _, document = home.outbox("append", str(file))
    if document["appended"] != count:
        raise BenchmarkFailed(f"{count} events were to be appended: {document}")


def _relay(home: Commands, mode: str, *, wanted: int) -> float:
    seconds, summary = home.outbox("relay", mode)
    if summary["published"] != wanted or summary["waiting"]:
        raise BenchmarkFailed(f"relay {mode}: {wanted} events should be published: {summary}")
    return seconds
