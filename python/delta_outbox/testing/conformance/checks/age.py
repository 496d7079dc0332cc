"""An event that gets too old."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from delta_outbox.testing.conformance.adapter import SHORT_LIVED, Capability, NewEvent
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.stage import Look, Stage
from delta_outbox.testing.demands import same


@dataclass(frozen=True, kw_only=True)
class Age:
    """What was seen.

    Args:
        young: a look at half the age, after reaping.
        old: a look at its age, after reaping.
        history: steps by event; empty without a history.
    """

    young: Look
    old: Look
    history: Mapping[str, tuple[tuple[str, str], ...]]


def play(stage: Stage) -> Age:
    """Let an event get old.

    Args:
        stage: where.
    """
    age = stage.terms.age_seconds or 0.0
    now = stage.now()
    stage.append(
        NewEvent(event_id="short", event_type=SHORT_LIVED, available_at=now),
        NewEvent(event_id="long", available_at=now),
    )
    stage.store.advance(age / 2)
    stage.store.reap()
    young = stage.look()
    stage.store.advance(age / 2)
    stage.store.reap()
    old, history = stage.look(), stage.history()
    stage.end(stage.take("relay-1", "long"))
    return Age(young=young, old=old, history=history)


AGE: Final = Scenario("age", play, Capability.AGE)


@AGE.check()
def it_dies_of_its_age(seen: Age) -> None:
    """An event that nobody took in time is DEAD, not before; others stay."""
    same("PENDING", seen.young["short"].state, "state before its age")
    same("DEAD", seen.old["short"].state, "state at its age")
    same("PENDING", seen.old["long"].state, "state of an event that does not age")


@AGE.check(Capability.HISTORY)
def the_old_die_of_a_claim(seen: Age) -> None:
    """On record, what is too old is claimed before it is DEAD."""
    steps = (("PENDING", "CLAIMED"), ("CLAIMED", "DEAD"))
    same(steps, seen.history["short"], "steps of an event that is too old")
