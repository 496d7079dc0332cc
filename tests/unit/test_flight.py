"""What is published beside what, and what may overtake."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from delta_outbox.claims import DELIVERIES, Claim
from delta_outbox.conformance.clock import ManualClock
from delta_outbox.lifecycle import EndOfClaim
from delta_outbox.relay.flight import SLOW_SECONDS, Flight, Held
from delta_outbox.relay.schedule import Kind


class Field:
    """Flights that land when they are told to."""

    def __init__(self) -> None:
        """Let everything fly."""
        self.clock = ManualClock()
        self.may_land = threading.Event()
        self.flight = Flight(self._publish, self.clock)

    def _publish(self, held: Held) -> list[EndOfClaim]:
        self.may_land.wait()
        return []

    def start(self, kind: Kind) -> None:
        """Start a claim of a kind."""
        claim = Claim(
            claim_id="c",
            deliveries=DELIVERIES.empty_table(),
            policies=[],
            policy_version="",
            claimed_at=self.clock.now(),
        )
        self.flight.start(Held(kind=kind, claim=claim, scopes=[]))

    def admitted(self) -> set[Kind]:
        """Return the kinds that may start."""
        return {kind for kind in Kind if self.flight.admits(kind)}


@pytest.fixture
def field() -> Iterator[Field]:
    """Return flights, of which none is left in the air."""
    field = Field()
    yield field
    field.may_land.set()
    field.flight.close()


def test_each_kind_flies_beside_the_other(field: Field) -> None:
    """One claim of each kind may fly at a time."""
    assert {Kind.NEW, Kind.TROUBLED} == field.admitted()
    field.start(Kind.NEW)
    assert {Kind.TROUBLED} == field.admitted()
    field.start(Kind.TROUBLED)
    assert set() == field.admitted()


def test_slow_claim_of_new_deliveries_is_overtaken(field: Field) -> None:
    """When one takes long, one more may start beside it, and another when that one has landed;
    what has failed before is never overtaken.
    """
    field.start(Kind.NEW)
    field.start(Kind.TROUBLED)
    field.clock.sleep(SLOW_SECONDS - 0.001)
    assert set() == field.admitted()
    field.clock.sleep(0.001)
    assert {Kind.NEW} == field.admitted()
    field.start(Kind.NEW)
    field.clock.sleep(SLOW_SECONDS)
    assert set() == field.admitted()
    assert 3 == len(field.flight)


def test_what_has_landed_is_told_once(field: Field) -> None:
    """Each claim lands once, and then its kind may start again."""
    field.start(Kind.NEW)
    assert [] == list(field.flight.landed())
    field.may_land.set()
    field.flight.wait(60.0)
    assert [Kind.NEW] == [held.kind for held, _ in field.flight.landed()]
    assert [] == list(field.flight.landed())
    assert Kind.NEW in field.admitted()
