"""Unanswered deliveries of destinations that know what they got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from delta_outbox.core.settings import PublisherSettings, RelaySettings, SecretMapping, Settings
from delta_outbox.lifecycle.claims import DELIVERIES, make_claim
from delta_outbox.lifecycle.endings import Crashed, EndOfClaim, LeaseExpired
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.publishers import (
    Delivered,
    EventBatch,
    Failed,
    Recover,
    Recovered,
    Result,
    Unknown,
    UnresolvedClaim,
)
from delta_outbox.relay.claim.flight import Held
from delta_outbox.relay.plan.window import Kind
from delta_outbox.relay.publish.producer_slots import ProducerSlots
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.store.unknown_results import LONGEST_PAUSE, Unanswered, UnknownResults, Unresolved
from delta_outbox.testing.conformance.clock import ManualClock

AT = datetime(2026, 1, 1, tzinfo=UTC)
SKEW = 60.0  # seconds
ASKED: list[Sequence[UnresolvedClaim]] = []
KNOWN: dict[str, dict[str, Delivered]] = {}
AWAY = [False]
THERE = Delivered(receipt={"found": True})


class Knowing:
    """A publisher that knows what it got, if its settings say so."""

    @classmethod
    def recovery(cls, settings: Mapping[str, object]) -> Recover | None:
        return recover if settings["exactly"] else None

    def open(self, settings: Mapping[str, object]) -> None: ...

    def publish(self, events: EventBatch) -> list[Result]:
        raise AssertionError("nothing is published here")

    def close(self) -> None: ...


def recover(claims: Sequence[UnresolvedClaim], timeout: float) -> Recovered:
    """Say what is known, unless nobody answers."""
    ASKED.append(claims)
    if AWAY[0]:
        raise ConnectionError("nobody answers, password=canary")
    return {one.claim_id: KNOWN.get(one.claim_id, {}) for one in claims}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Forget what other tests have asked."""
    yield
    ASKED.clear()
    KNOWN.clear()
    AWAY[0] = False


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that stands still."""
    return ManualClock()


@pytest.fixture
def unknown_results(clock: ManualClock, tmp_path: Path) -> UnknownResults:
    """Return one with destinations that know, one that does not, and one that never could."""
    type_ = f"{__name__}:Knowing"
    publishers = {
        "exact": PublisherSettings(type=type_, settings=SecretMapping({"exactly": True})),
        "second": PublisherSettings(type=type_, settings=SecretMapping({"exactly": True})),
        "plain": PublisherSettings(type=type_, settings=SecretMapping({"exactly": False})),
        "file": PublisherSettings(type="jsonl"),
    }
    relay = RelaySettings(clock_skew_seconds=SKEW)
    return UnknownResults(Settings(relay=relay, publishers=publishers), home=tmp_path, clock=clock)


def unanswered(
    event_id: str, *, destination: str = "exact", claim_id: str = "c", lifecycle: int = 0
) -> Unanswered:
    """Return an unanswered delivery."""
    return Unanswered(
        claim_id=claim_id,
        destination=destination,
        event_id=event_id,
        lifecycle=lifecycle,
        claimed_at=AT,
    )


def test_a_destination_of_cloudevents_is_asked(tmp_path: Path, clock: ManualClock):
    """Its table `cloudevents` is the relay's: a publisher would refuse to know it."""
    given = {
        "bootstrap.servers": "localhost:9092",
        "topics": ["order.*"],
        "delivery": "exactly_once",
        "marker_topic": "markers",
        "cloudevents": {"source": "/shop"},
    }
    described = PublisherSettings(type="kafka", settings=SecretMapping(given))
    settings = Settings(publishers={"orders": described})
    assert UnknownResults(settings, home=tmp_path, clock=clock).is_asked("orders")


def test_only_who_knows_is_asked(unknown_results: UnknownResults):
    """Other destinations, and one that the settings have no more, cost nothing."""
    names = ["plain", "file", "gone"]
    assert [None] * 3 == unknown_results.resolve(
        [unanswered("e", destination=name) for name in names]
    )
    assert [] == ASKED
    assert [False] * 3 == [unknown_results.is_asked(name) for name in names]
    assert unknown_results.is_asked("exact")


def test_each_delivery_gets_its_own_answer(unknown_results: UnknownResults):
    """What is known is found by claim and delivery: a replay is another delivery; each claim is
    asked about once, from its start less what clocks may differ by.
    """
    KNOWN["c"] = {"e": THERE, "r:1": THERE}
    found = unknown_results.resolve(
        [
            *(unanswered("e"), unanswered("f"), unanswered("r"), unanswered("r", lifecycle=1)),
            *(unanswered("e", claim_id="other"), unanswered("e", destination="plain")),
        ]
    )
    assert [THERE, None, None, THERE, None, None] == found
    [claims] = ASKED
    since = AT - timedelta(seconds=SKEW)
    assert {("c", "exact", since), ("other", "exact", since)} == {
        (one.claim_id, one.destination, one.since) for one in claims
    }
    assert len(claims) == 2


def test_without_an_answer_nothing_is_decided(
    unknown_results: UnknownResults, clock: ManualClock, caplog: pytest.LogCaptureFixture
):
    """As long as the destination cannot say, deliveries are unresolved, and it is asked ever more
    rarely; the first answer resolves them.
    """
    AWAY[0] = True
    pauses = []
    for _ in range(9):
        assert [Unresolved()] == unknown_results.resolve([unanswered("e")])
        asked = len(ASKED)
        assert [Unresolved()] == unknown_results.resolve([unanswered("e")])
        assert asked == len(ASKED)
        pauses.append(unknown_results.seconds_to_wait())
        clock.sleep(pauses[-1])
    assert [1, 2, 4, 8, 16, 32, 64, 64, 64] == pauses
    assert LONGEST_PAUSE == pauses[-1]
    assert "canary" not in caplog.text
    AWAY[0] = False
    assert [None] == unknown_results.resolve([unanswered("e")])
    assert 0 == unknown_results.seconds_to_wait()


def test_only_who_is_waited_for_counts(unknown_results: UnknownResults, clock: ManualClock) -> None:
    """A destination whose pause is long over, for nobody has asked since, hurries nobody."""
    AWAY[0] = True
    unknown_results.resolve([unanswered("e")])
    clock.sleep(10)
    assert 0 == unknown_results.seconds_to_wait()
    unknown_results.resolve([unanswered("e", destination="second")])
    assert 1 == unknown_results.seconds_to_wait()


def test_an_expired_claim_ends_by_what_is_known(unknown_results: UnknownResults):
    """Of claims that are over, what was delivered is Delivered, the rest expired, and what cannot
    be resolved keeps its claim while others end.
    """
    rows = [
        {
            "event_id": event_id,
            "destination": destination,
            "lifecycle": 0,
            "claim_id": "c",
            "claimed_at": AT,
        }
        for event_id, destination in (("e", "exact"), ("f", "exact"), ("e", "plain"))
    ]
    held = pa.Table.from_pylist(rows)
    KNOWN["c"] = {"e": THERE}
    assert (held, [THERE, LeaseExpired(), LeaseExpired()], False) == unknown_results.of_held(held)
    AWAY[0] = True
    part, ends, left = unknown_results.of_held(held)
    assert ([rows[2]], [LeaseExpired()], True) == (part.to_pylist(), ends, left)
    assert (part, ends, False) == unknown_results.of_held(part)


POLICY = (
    "event_type,destination,route,format,ordering,order_scope,max_attempts,max_crashes,"
    "expires_after_seconds,lease_seconds,backoff_initial_seconds,backoff_multiplier,"
    "backoff_max_seconds,backoff_jitter,on_dead\n"
    "*,exact,,,strict,key,10,3,,30,1,2,300,0.2,continue\n"
)


def held_claim(*event_ids: str) -> Held:
    """Return a claim in flight."""
    rows = [
        dict.fromkeys(DELIVERIES.names)
        | {"event_id": one, "arrival": 1, "event_type": "t", "destination": "exact"}
        | {"lifecycle": 0, "attempts": 0}
        for one in event_ids
    ]
    table = pa.Table.from_pylist(rows, DELIVERIES)
    policies = PolicySet.from_csv(POLICY)
    claim = make_claim(table, policies=policies, now=AT, claim_id="c")
    log = cast("TransitionLog", None)  # nothing is appended
    return Held(kind=Kind.FIRST_ATTEMPT, claim=claim, log=log, order_scopes=set())


def test_a_known_result_is_believed(unknown_results: UnknownResults):
    """Where every result is known nobody is asked, and nothing is waited for."""
    held = held_claim("a", "b")
    results: list[EndOfClaim] = [Delivered(), Failed(error="busy")]

    def wait() -> None:
        raise AssertionError

    assert results == unknown_results.of_published(held.claim, results, wait_until_over=wait)
    assert [] == ASKED
    assert (held, results) == held.ended(results)


def test_unknown_results_are_resolved_after_the_deadline(unknown_results: UnknownResults):
    """Crashed and Unknown are asked about, after nothing can be sent any more; what was not
    delivered stays as it was.
    """
    held = held_claim("a", "b", "c", "d")
    KNOWN["c"] = {"a": THERE, "d": THERE}
    results: list[EndOfClaim] = [Crashed(), Unknown(error="?"), Delivered(), Unknown(error="?")]
    waited: list[int] = []
    found = unknown_results.of_published(
        held.claim, results, wait_until_over=lambda: waited.append(len(ASKED))
    )
    assert [THERE, Unknown(error="?"), Delivered(), THERE] == found
    assert [0] == waited
    assert 1 == len(ASKED)


def test_what_cannot_be_resolved_stays_claimed(unknown_results: UnknownResults):
    """The part of a claim that ends has its own deliveries and policies, and no others."""
    AWAY[0] = True
    held = held_claim("a", "b", "c")
    results: list[EndOfClaim] = [Crashed(), Delivered(), Crashed()]
    outcomes = unknown_results.of_published(held.claim, results, wait_until_over=lambda: None)
    assert [Unresolved(), Delivered(), Unresolved()] == outcomes
    part, ends = held.ended(outcomes)
    assert [Delivered()] == ends
    assert ["b"] == part.claim.deliveries["event_id"].to_pylist()
    assert 1 == len(part.claim.policies)


def test_no_two_claims_share_a_seat():
    """A slot is free again once its claim has completed, so that there are few."""
    slots = ProducerSlots("relay-1")
    with slots.taken() as one:
        with slots.taken() as two:
            assert ("relay-1.0", "relay-1.1") == (one, two)
        with slots.taken() as again:
            assert two == again
    with slots.taken() as again:
        assert one == again
