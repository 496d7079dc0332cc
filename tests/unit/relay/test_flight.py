"""What is published beside what: each claim on its own, told once when it has completed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest

from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.claims import DELIVERIES, Claim
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.relay.claim.flight import Flight, Held
from delta_outbox.relay.plan.window import Kind
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.testing.conformance.clock import ManualClock


class Field:
    """Claims in flight that complete when they are told to."""

    def __init__(self) -> None:
        """Let everything start."""
        self.clock = ManualClock()
        self.may_complete: dict[str, threading.Event] = {}
        self.flight = Flight(self._publish, self.clock)

    def _publish(self, held: Held) -> list[EndOfClaim]:
        self.may_complete[held.claim.claim_id].wait()
        if held.claim.claim_id == "broken":
            raise RuntimeError("broken")
        return [Delivered() for _ in held.order_scopes]

    def start(self, name: str, *scopes: str | None) -> Held:
        """Start a claim, and return it."""
        claim = Claim(
            claim_id=name,
            deliveries=DELIVERIES.empty_table(),
            policies=ClaimPolicies([], np.array([], np.int32)),
            policy_version="",
            claimed_at=self.clock.now(),
        )
        self.may_complete[name] = threading.Event()
        log = cast("TransitionLog", None)  # nothing is appended
        held = Held(kind=Kind.FIRST_ATTEMPT, claim=claim, log=log, order_scopes={*scopes})
        self.flight.start(held)
        return held

    def complete(self, name: str) -> list[Held]:
        """Let one complete, and return what has."""
        self.may_complete[name].set()
        self.flight.wait(60.0)
        return [held for held, _ in self.flight.completed()]


@pytest.fixture
def field() -> Iterator[Field]:
    """Return flights, of which none is left in flight."""
    field = Field()
    yield field
    for event in field.may_complete.values():
        event.set()
    field.flight.close()


def test_none_waits_for_the_end_of_another(field: Field) -> None:
    """A claim that began later completes first, and the other one stays in flight."""
    slow = field.start("slow", "a", None, "a")
    field.clock.sleep(30)
    quick = field.start("quick", "b")
    assert 30.0 == field.flight.age()
    assert [quick] == field.complete("quick")
    assert [slow] == field.flight.held()
    assert [slow] == field.complete("slow")
    assert (0, 0.0) == (len(field.flight), field.flight.age())


def test_what_has_completed_is_told_once(field: Field) -> None:
    """Each claim completes once, with an answer for each of its deliveries."""
    held = field.start("one", "a", "b")
    assert [] == list(field.flight.completed())
    field.may_complete["one"].set()
    field.flight.wait(60.0)
    assert [(held, [Delivered(), Delivered()])] == list(field.flight.completed())
    assert [] == list(field.flight.completed())


def test_what_publishing_raises_is_raised_once(field: Field) -> None:
    """Whoever asks what has completed learns that publishing broke, and then about the others."""
    field.start("broken", "a")
    other = field.start("other", "b")
    with pytest.raises(RuntimeError, match="broken"):
        field.complete("broken")
    assert [other] == field.complete("other")
