"""Several relays at once, on one backlog."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from delta_outbox.testing.conformance.adapter import Capability, NewEvent
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.checks.steps import check_steps
from delta_outbox.testing.conformance.stage import Look, Stage, Taken
from delta_outbox.testing.demands import holds, same

EVENTS: Final = tuple(f"event-{number:02}" for number in range(12))
RELAYS: Final = ("relay-1", "relay-2", "relay-3")
LIMIT: Final = 3

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Race:
    """What was seen.

    Args:
        none, some: retrieved with a limit of 0 and of `LIMIT`.
        claims: what each relay has got, all at once.
        held: a look while they hold it.
        ended: a look after they have ended it, all at once.
        sizes: of all claims that were made.
        final: the last look.
        history: steps by event; empty without a history.
    """

    none: tuple[str, ...]
    some: tuple[str, ...]
    claims: tuple[tuple[str, ...], ...]
    held: Look
    ended: Look
    sizes: tuple[int, ...]
    final: Look
    history: Mapping[str, tuple[tuple[str, str], ...]]


def at_once(calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Make calls at the same time, each on a thread of its own.

    Args:
        calls: what to call.
    """
    start = threading.Barrier(len(calls))

    def call(one: Callable[[], Answer]) -> Answer:
        start.wait()
        return one()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


def play(stage: Stage) -> Race:
    """Let relays race.

    Args:
        stage: where.
    """
    keyed = {name: f"key-{number % 2}" for number, name in enumerate(EVENTS) if number % 3}
    stage.append(*(NewEvent(event_id=name, ordering_key=keyed.get(name)) for name in EVENTS))
    none, some = stage.retrieve(0), stage.retrieve(LIMIT)
    taken: list[Taken] = at_once([partial(stage.claim, relay, LIMIT) for relay in RELAYS])
    held = stage.look()
    at_once([partial(stage.end, one) for one in taken])
    ended = stage.look()
    stage.deliver("relay-1", *(name for name in EVENTS if _is_open(ended, name)))
    return Race(
        none=none,
        some=some,
        claims=tuple(one.names for one in taken),
        held=held,
        ended=ended,
        sizes=tuple(len(one.event_ids) for taken_ in taken for one in taken_.held),
        final=stage.look(),
        history=stage.history(),
    )


def _is_open(look: Look, name: str) -> bool:
    return name in look and look[name].state in ("PENDING", "CLAIMED")


RACE: Final = Scenario("race", play)


@RACE.check()
def retrieval_keeps_to_the_limit(seen: Race) -> None:
    """A limit of 0 gives nothing, a limit of 3 at most three."""
    same((), seen.none, "what is retrieved with a limit of 0")
    holds(seen.some, "a limit of 3 retrieves nothing")
    holds(len(seen.some) <= LIMIT, f"a limit of {LIMIT} retrieves {len(seen.some)}")


@RACE.check()
def a_claim_keeps_to_the_limit(seen: Race) -> None:
    """No relay gets more than it has asked for, also while others ask."""
    for size in seen.sizes:
        holds(size <= LIMIT, f"a claim of at most {LIMIT} holds {size}")


@RACE.check()
def an_event_has_one_claim_at_a_time(seen: Race) -> None:
    """Relays that claim at once get different events."""
    twice = [name for name, n in Counter(n for one in seen.claims for n in one).items() if n > 1]
    holds(not twice, f"claimed by two relays at once: {sorted(twice)}")


@RACE.check()
def relays_work_at_once(seen: Race) -> None:
    """At least one relay gets something, and what they get is CLAIMED by them."""
    holds(any(seen.claims), "of several relays that claim at once none gets anything")
    for relay, names in zip(RELAYS, seen.claims, strict=True):
        for name in names:
            record = seen.held[name]
            same(("CLAIMED", relay), (record.state, record.claimed_by), f"{name!r} in the race")


@RACE.check()
def concurrent_ends_all_count(seen: Race) -> None:
    """What relays end at once is PUBLISHED, with nothing of a claim left on it."""
    for names in seen.claims:
        for name in names:
            record = seen.ended[name]
            same("PUBLISHED", record.state, f"state of {name!r} after ends at once")
            same((None, None), (record.claimed_at, record.claimed_by), f"owner of {name!r}")


@RACE.check()
def a_race_loses_nothing(seen: Race) -> None:
    """After the race every event is delivered."""
    same(sorted(EVENTS), sorted(seen.final), "the events after the race")
    for name in EVENTS:
        same("PUBLISHED", seen.final[name].state, f"state of {name!r} after the race")


@RACE.check(Capability.HISTORY)
def a_race_keeps_transitions_legal(seen: Race) -> None:
    """On record, every step in the race is one of the six, each from where the event stood."""
    check_steps(seen.history)
