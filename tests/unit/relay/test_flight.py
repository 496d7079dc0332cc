"""What is published beside what, and what may overtake."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.claims import DELIVERIES, Claim
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.results import Delivered, Failed, Rejected, Unknown
from delta_outbox.relay.flight import SLOW_SECONDS, Flight, Held
from delta_outbox.relay.schedule import Kind
from delta_outbox.testing.conformance.clock import ManualClock


class Field:
    """Claims in flight that complete when they are told to."""

    def __init__(self) -> None:
        """Let everything start."""
        self.clock = ManualClock()
        self.may_complete = threading.Semaphore(0)
        self.answers: dict[str, EndOfClaim] = {}  # of scopes; Delivered for any other
        self.flight = Flight(self._publish, self.clock)

    def _publish(self, held: Held) -> list[EndOfClaim]:
        self.may_complete.acquire()
        return [self.answers.get(scope or "", Delivered()) for scope in held.scopes]

    def start(self, kind: Kind, *scopes: str | None) -> Held:
        """Start a claim of a kind, and return it."""
        held = self.made(kind, *scopes)
        self.flight.start(held)
        return held

    def queue(self, *scopes: str | None) -> Held:
        """Let a claim of new deliveries wait for the one in flight, and return it."""
        held = self.made(Kind.FIRST_ATTEMPT, *scopes)
        self.flight.queue(held)
        return held

    def made(self, kind: Kind, *scopes: str | None) -> Held:
        """Return a claim of a kind."""
        claim = Claim(
            claim_id="c",
            deliveries=DELIVERIES.empty_table(),
            policies=ClaimPolicies([], np.array([], np.int32)),
            policy_version="",
            claimed_at=self.clock.now(),
        )
        return Held(kind=kind, claim=claim, scopes=list(scopes))

    def complete(self) -> list[Held]:
        """Let one complete, and return what has."""
        self.may_complete.release()
        self.flight.wait(60.0)
        return [held for held, _ in self.flight.completed()]

    def may_queue(self) -> bool:
        """Say whether a claim may wait, if the last one took no time to speak of."""
        return self.flight.may_queue(within=1.0)

    def admitted(self) -> set[Kind]:
        """Return the kinds that may start."""
        return {kind for kind in Kind if self.flight.admits(kind)}


@pytest.fixture
def field() -> Iterator[Field]:
    """Return flights, of which none is left in flight."""
    field = Field()
    yield field
    field.may_complete.release(10)
    field.flight.close()


def test_each_kind_flies_beside_the_other(field: Field) -> None:
    """One claim of each kind may be in flight at a time."""
    assert {Kind.FIRST_ATTEMPT, Kind.RETRY} == field.admitted()
    field.start(Kind.FIRST_ATTEMPT)
    assert {Kind.RETRY} == field.admitted()
    field.start(Kind.RETRY)
    assert set() == field.admitted()


def test_slow_claim_of_new_deliveries_is_overtaken(field: Field) -> None:
    """When one takes long, one more may start beside it, and another when that one has completed;
    what has failed before is never overtaken.
    """
    field.start(Kind.FIRST_ATTEMPT)
    field.start(Kind.RETRY)
    field.clock.sleep(SLOW_SECONDS - 0.001)
    assert set() == field.admitted()
    field.clock.sleep(0.001)
    assert {Kind.FIRST_ATTEMPT} == field.admitted()
    field.start(Kind.FIRST_ATTEMPT)
    field.clock.sleep(SLOW_SECONDS)
    assert set() == field.admitted()
    assert 3 == len(field.flight)


def test_what_has_completed_is_told_once(field: Field) -> None:
    """Each claim completes once, and then its kind may start again."""
    field.start(Kind.FIRST_ATTEMPT)
    assert [] == list(field.flight.completed())
    assert [Kind.FIRST_ATTEMPT] == [held.kind for held in field.complete()]
    assert [] == list(field.flight.completed())
    assert Kind.FIRST_ATTEMPT in field.admitted()


def test_the_next_claim_waits_for_the_one_in_flight(field: Field) -> None:
    """It is ours already, and starts when the other has completed, before anybody asks."""
    field.start(Kind.FIRST_ATTEMPT)
    field.complete()
    assert not field.may_queue()
    first = field.start(Kind.FIRST_ATTEMPT, "a", "b", None)
    assert field.may_queue()
    second = field.queue("a", "c", None)
    assert not field.may_queue()
    assert [first, second] == field.flight.held()
    assert 1 == len(field.flight)
    assert [first] == field.complete()
    assert 1 == len(field.flight)
    assert set() == second.blocked
    assert [second] == field.complete()


def test_what_follows_a_failure_is_blocked(field: Field) -> None:
    """In whatever claim it was: also one of retries, which completes first."""
    field.answers = {"t": Unknown(), "a": Failed(error="no")}
    retry = field.start(Kind.RETRY, "t")
    assert 1 == len(field.flight)
    waiting = field.made(Kind.FIRST_ATTEMPT, "a", "b", "t")
    field.may_complete.release()
    field.flight.wait(60.0)
    new = field.start(Kind.FIRST_ATTEMPT, "a", "b")
    field.flight.queue(waiting)
    assert [retry] == [held for held, _ in field.flight.completed()]
    assert {"t"} == waiting.blocked
    assert [new] == field.complete()
    assert {"a", "t"} == waiting.blocked


def test_what_completed_while_it_was_claimed_is_no_longer_waited_for(field: Field) -> None:
    """Its failures count all the same."""
    field.answers = {"a": Rejected(error="no")}
    field.start(Kind.FIRST_ATTEMPT, "a")
    field.may_complete.release()
    field.flight.wait(60.0)
    waiting = field.queue("a")
    assert 2 == len(field.flight)
    assert {"a"} == waiting.blocked


def test_a_claim_that_waits_overtakes_a_slow_one_without_its_scopes(field: Field) -> None:
    """What follows a delivery in flight must not be sent beside it."""
    field.start(Kind.FIRST_ATTEMPT, "a", None)
    waiting = field.queue("a", "b")
    field.flight.overtake()
    assert 1 == len(field.flight)
    field.clock.sleep(SLOW_SECONDS)
    assert {Kind.RETRY} == field.admitted()
    field.flight.overtake()
    assert 2 == len(field.flight)
    assert {"a"} == waiting.blocked
    assert not field.may_queue()


def test_what_completes_elsewhere_is_not_waited_for(field: Field) -> None:
    """What waits goes by the claims for all destinations, not by those for one of them."""
    field.start(Kind.FIRST_ATTEMPT)
    field.complete()
    field.flight.start(replace(field.made(Kind.FIRST_ATTEMPT), to="shop"))
    assert not field.may_queue()
    field.start(Kind.FIRST_ATTEMPT)
    assert field.may_queue()
    field.queue()
    assert not field.flight.admits(Kind.FIRST_ATTEMPT)
    assert not field.flight.admits(Kind.FIRST_ATTEMPT, to="shop")
    assert field.flight.admits(Kind.FIRST_ATTEMPT, to="other")


def test_a_poll_between_completion_and_its_word_breaks_nothing(field: Field) -> None:
    """The claim in flight is completed before its thread has said that it is over: what waits keeps
    waiting for that word, and nothing starts before it.
    """
    field.start(Kind.FIRST_ATTEMPT, "a")
    waiting = field.queue("b")
    field.flight._in_flight.clear()  # as `completed` leaves it
    field.flight.overtake()
    assert not field.flight.admits(Kind.FIRST_ATTEMPT)
    assert waiting is field.flight.withdraw()


def test_a_claim_that_waits_can_be_taken_back(field: Field) -> None:
    """Whoever stops releases it."""
    field.start(Kind.FIRST_ATTEMPT)
    waiting = field.queue()
    assert waiting is field.flight.withdraw()
    assert None is field.flight.withdraw()
    field.complete()
    assert 0 == len(field.flight)


def test_nothing_waits_behind_what_takes_long(field: Field) -> None:
    """A claim that waits uses up its lease, so only the fast are waited for."""
    field.start(Kind.FIRST_ATTEMPT)
    assert not field.may_queue()
    field.clock.sleep(1.1)
    field.complete()
    field.start(Kind.FIRST_ATTEMPT)
    assert not field.may_queue()
    field.clock.sleep(0.9)
    field.complete()
    field.start(Kind.FIRST_ATTEMPT)
    assert field.may_queue()
