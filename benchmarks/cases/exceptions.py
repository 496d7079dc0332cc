"""What a drain pays for what is not usual: a replay, an age, a paused destination, an open breaker.

Each is drained in turns with the same without it, in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks import ours
from benchmarks.broker import broker
from benchmarks.costs import Cost, as_documents
from benchmarks.figures import median, ratio, scaled
from benchmarks.messages import Stream
from benchmarks.processes import in_own_process
from benchmarks.progress import say
from benchmarks.room import EVENT_BYTES, check_room
from benchmarks.seeding import write_history

from delta_outbox.outbox import Outbox
from delta_outbox.settings import DestinationLimits
from delta_outbox.operating.pausing import append_pausing, pausing_request

FRESH: Final = {"1,000 fresh events": 1_000, "100,000 fresh events": 100_000}
BATCH: Final = 10_000
PAST: Final = 300_000  # delivered before, of which some are replayed
HELD: Final = 10_000  # of the destination that is paused or down
OTHER: Final = "other"
YEAR: Final = 365 * 86_400  # seconds
BREAKER_SECONDS: Final = 86_400.0  # that it stays open, the most that there is

REPLAY, AGE = "a replay", "a policy with an age"
PAUSE, BREAKS = "a paused destination", "an open breaker"
KINDS: Final = ((REPLAY, AGE), (PAUSE, BREAKS))
"""What is tried in one process, with one destination and with two."""

Beside = Callable[[], AbstractContextManager[tuple[list[Stream], int]]]
"""Makes something unusual for a block; says what is due beside the fresh events, and what waits."""

Costs = dict[str, dict[str, dict[str, list[Cost]]]]
"""What drains cost: by kind, by what is drained, and "with" or "without"."""


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of events.
        rounds: of each, with and without.
    """
    fresh = {name: scaled(count, size) for name, count in FRESH.items()}
    past, held = scaled(PAST, size), scaled(HELD, size, at_least=100)
    check_room(EVENT_BYTES * (past + (2 + 4 * rounds) * sum(fresh.values()) + 2 * rounds * held))
    costs: Costs = {}
    with broker() as kafka:
        kafka.topic(Stream(name="bench.past", count=past))
        for number, kinds in enumerate(KINDS):
            streams = {
                what: [
                    kafka.topic(Stream(name=f"bench.fresh-{number}-{place}-{at}", count=count))
                    for at in range(1 + 2 * rounds * len(kinds))
                ]
                for place, (what, count) in enumerate(fresh.items())
            }
            costs |= in_own_process(
                drains, kafka.bootstrap, kinds, streams, past=past, held=held, rounds=rounds
            )
            for stream in (one for of in streams.values() for one in of):
                kafka.check(stream)
                kafka.drop(stream)
    return {
        "what": {"fresh": fresh, "past": past, "held": held, "batch": BATCH, "rounds": rounds},
        "seconds": {
            kind: {
                what: {name: median([one.seconds for one in of]) for name, of in both.items()}
                for what, both in by_what.items()
            }
            for kind, by_what in costs.items()
        },
        "ratios": {
            kind: {what: _ratios(both) for what, both in by_what.items()}
            for kind, by_what in costs.items()
        },
        "costs": as_documents(
            {
                f"{what} {name} {kind}": of
                for kind, by_what in costs.items()
                for what, both in by_what.items()
                for name, of in both.items()
            }
        ),
    }


def _ratios(both: Mapping[str, list[Cost]]) -> dict[str, float]:
    beside, without = both["with"], both["without"]
    return {
        "seconds": ratio(
            median([one.seconds for one in beside]), median([one.seconds for one in without])
        ),
        "cpu_seconds": ratio(
            median([one.cpu_seconds for one in beside]),
            median([one.cpu_seconds for one in without]),
        ),
    }


def drains(
    bootstrap: str,
    kinds: tuple[str, ...],
    streams: Mapping[str, list[Stream]],
    *,
    past: int,
    held: int,
    rounds: int,
) -> Costs:
    """Drain fresh events with and without what is unusual, and return what it cost.

    Args:
        bootstrap: address of the broker.
        kinds: what is unusual.
        streams: of fresh events, by what they are called; each is used once.
        past: events that were delivered before.
        held: events that wait for a destination.
        rounds: of each.
    """
    fresh = {what: iter(of) for what, of in streams.items()}
    others: dict[str, tuple[str, dict[str, object]]] = (
        {OTHER: ("null", {})} if PAUSE in kinds else {}
    )
    with ours.outbox_to_kafka(bootstrap, others=others) as outbox:
        ours.batches_of(outbox, BATCH)
        unusual = _Unusual(outbox, past=past, held=held)
        if REPLAY in kinds:
            write_history(outbox, unusual.past, now=datetime.now(UTC))
        if others:
            ours.add_policy(outbox, f"{OTHER}.*", destination=OTHER, backoff_max_seconds="1")

        def measured(what: str, beside: Beside) -> Cost:
            stream = next(fresh[what])
            with beside() as (due, waiting):
                ours.append(outbox, stream)
                return ours.drain(outbox, [stream, *due], waiting=waiting)

        for what in streams:
            measured(what, unusual.nothing)
        found: Costs = {}
        for kind in kinds:
            found[kind] = {what: {"without": [], "with": []} for what in streams}
            for what in (what for _ in range(rounds) for what in streams):
                for name, beside in (("without", unusual.nothing), ("with", unusual.kinds[kind])):
                    found[kind][what][name].append(measured(what, beside))
            say(f"{kind}: {found[kind]}")
        if REPLAY in kinds:
            ours.check_states(outbox, [unusual.past])
        ours.check(outbox, [stream for of in streams.values() for stream in of])
        ours.check_states(outbox, unusual.held, attempts=None)
    return found


class _Unusual:
    """Makes what is unusual, and takes it away again.

    Args:
        outbox: the store.
        past: events that were delivered before.
        held: events that wait for a destination, each time.
    """

    def __init__(self, outbox: Outbox, *, past: int, held: int) -> None:
        self._outbox = outbox
        self.past = Stream(name="bench.past", count=past)
        self._replayed = 0
        self._count = held
        self.held: list[Stream] = []
        self.kinds: Mapping[str, Beside] = {
            REPLAY: self.replay,
            AGE: self.age,
            PAUSE: self.pause,
            BREAKS: self.open_breaker,
        }

    @contextmanager
    def nothing(self) -> Iterator[tuple[list[Stream], int]]:
        """Leave all as it is."""
        yield [], 0

    @contextmanager
    def replay(self) -> Iterator[tuple[list[Stream], int]]:
        """Let one event of the past be delivered again."""
        event_id = self.past.event_id(self._replayed)
        self._replayed += 1
        ours.replay(self._outbox, event_id)
        yield [Stream(name=self.past.name, count=1)], 0

    @contextmanager
    def age(self) -> Iterator[tuple[list[Stream], int]]:
        """Let every event have an age after which it is not delivered any more."""
        ours.add_policy(self._outbox, "bench.*", expires_after_seconds=str(YEAR))
        yield [], 0
        ours.drop_policy(self._outbox, "bench.*")

    @contextmanager
    def pause(self) -> Iterator[tuple[list[Stream], int]]:
        """Pause a destination for which events wait."""
        self._ask("pause")
        yield [], self._hold()
        self._ask("resume")
        self._release()

    @contextmanager
    def open_breaker(self) -> Iterator[tuple[list[Stream], int]]:
        """Let a destination be down for which events wait, with its breaker open."""
        ours.deliver_to(
            self._outbox,
            "benchmarks.refusing:Refusing",
            {},
            destination=OTHER,
            limits=DestinationLimits(breaker_failures=1, breaker_seconds=BREAKER_SECONDS),
        )
        waiting = self._hold()
        ours.drain(self._outbox, [], waiting=waiting)  # the first attempt opens it
        yield [], waiting
        ours.deliver_to(self._outbox, "null", {}, destination=OTHER)
        self._release()

    def _hold(self) -> int:
        stream = Stream(name=f"{OTHER}.{len(self.held)}", count=self._count)
        self.held.append(stream)
        ours.append(self._outbox, stream)
        return len(stream)

    def _release(self) -> None:
        ours.drain(self._outbox, [self.held[-1]])

    def _ask(self, kind: str) -> None:
        asked = pausing_request(kind, destination=OTHER, actor="benchmark", reason="what it costs")
        append_pausing(self._outbox, asked)
