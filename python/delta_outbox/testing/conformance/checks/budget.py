"""Two events that fail at every attempt, ahead of two that are well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from delta_outbox.lifecycle.results import Failed
from delta_outbox.testing.conformance.adapter import Capability, NewEvent
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.stage import Look, Stage
from delta_outbox.testing.demands import holds, same

BAD: Final = ("bad-1", "bad-2")
GOOD: Final = ("good-1", "good-2")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What was seen.

    Args:
        max_attempts: what the store promises.
        rounds: a look after each attempt of the bad ones.
        beside: claimed by two places while the bad ones wait for their second attempt.
        behind: retrieved by one place when the bad ones are exhausted.
        dead: retrieved or taken again after that.
        final: the last look.
        history: steps by event; empty without a history.
    """

    max_attempts: int
    rounds: tuple[Look, ...]
    beside: tuple[str, ...]
    behind: tuple[str, ...]
    dead: frozenset[str]
    final: Look
    history: Mapping[str, tuple[tuple[str, str], ...]]


def play(stage: Stage) -> Budget:
    """Let two events fail as often as they may.

    Args:
        stage: where.
    """
    stage.append(*(NewEvent(event_id=name) for name in (*BAD, *GOOD)))
    rounds: list[Look] = []
    beside: tuple[str, ...] = ()
    for number in range(stage.terms.max_attempts):
        taken = stage.take("relay-1", *BAD, limit=2)
        stage.end(taken, dict.fromkeys(BAD, Failed(error=f"failed, round {number + 1}")))
        rounds.append(stage.look(*BAD))
        if number == 0:
            others = stage.claim("relay-2", 2)
            beside = others.names
            stage.end(others)
        stage.store.advance(stage.terms.backoff_seconds)
    stage.append(NewEvent(event_id="good-3"))
    behind = stage.retrieve(1)
    rest = stage.take("relay-1", "good-3")
    stage.end(rest)
    stage.store.reap()
    stage.store.advance(stage.terms.backoff_seconds)
    more = stage.retrieve()
    return Budget(
        max_attempts=stage.terms.max_attempts,
        rounds=tuple(rounds),
        beside=beside,
        behind=behind,
        dead=frozenset(BAD) & {*behind, *rest.names, *more},
        final=stage.look(),
        history=stage.history(),
    )


BUDGET: Final = Scenario("budget", play)


@BUDGET.check()
def it_dies_of_its_last_attempt(seen: Budget) -> None:
    """An event that fails max_attempts times is DEAD."""
    for name in BAD:
        last = seen.rounds[-1][name]
        same("DEAD", last.state, f"state after {seen.max_attempts} failed attempts")


@BUDGET.check()
def it_is_retried_until_then(seen: Budget) -> None:
    """Before its last attempt, an event that fails goes back to PENDING."""
    for number, look in enumerate(seen.rounds[:-1], start=1):
        for name in BAD:
            same("PENDING", look[name].state, f"state after failed attempt {number}")


@BUDGET.check()
def it_dies_exactly_when_the_store_says_so(seen: Budget) -> None:
    """The attempts at its death are those that the store promises."""
    for name in BAD:
        found = next((n for n, look in enumerate(seen.rounds, 1) if look[name].state == "DEAD"), 0)
        same(seen.max_attempts, found, "the failed attempt that made the event DEAD")


@BUDGET.check()
def attempts_are_counted_to_the_end(seen: Budget) -> None:
    """Each attempt counts one, the last one too."""
    for name in BAD:
        numbers = [look[name].attempts for look in seen.rounds]
        same(list(range(1, seen.max_attempts + 1)), numbers, "attempts after each attempt")


@BUDGET.check()
def last_error_follows_each_failure(seen: Budget) -> None:
    """The field last_error is that of the latest failure."""
    for number, look in enumerate(seen.rounds, start=1):
        for name in BAD:
            error = look[name].last_error or ""
            holds(f"round {number}" in error, f"last_error after failure {number} is {error!r}")


@BUDGET.check()
def what_is_exhausted_is_not_tried_again(seen: Budget) -> None:
    """After its death nothing retrieves or claims it, and it stays."""
    holds(not seen.dead, f"DEAD and taken: {sorted(seen.dead)}")
    for name in BAD:
        same("DEAD", seen.final[name].state, "state of an exhausted event later")


@BUDGET.check()
def what_backs_off_starves_nobody(seen: Budget) -> None:
    """While older events back off, a claim of two holds the two that are well."""
    same(sorted(GOOD), sorted(seen.beside), "what is taken while older events back off")


@BUDGET.check()
def what_is_exhausted_starves_nobody(seen: Budget) -> None:
    """Behind exhausted events, a look for one event finds the one that is well."""
    same(("good-3",), seen.behind, "what is retrieved behind exhausted events")


@BUDGET.check(Capability.HISTORY)
def the_exhausted_die_of_a_claim(seen: Budget) -> None:
    """On record, DEAD is reached from CLAIMED, never from PENDING."""
    for name in BAD:
        same(("CLAIMED", "DEAD"), seen.history[name][-1], f"last step of {name!r}")
