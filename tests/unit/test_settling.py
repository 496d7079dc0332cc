"""Lost deliveries of destinations that know what they got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from delta_outbox.claims import DELIVERIES, make_claim
from delta_outbox.conformance.clock import ManualClock
from delta_outbox.lifecycle import Crashed, EndOfClaim, LeaseExpired
from delta_outbox.policy import PolicySet
from delta_outbox.publishers import (
    Delivered,
    EventBatch,
    Failed,
    LostClaim,
    Recover,
    Recovered,
    Result,
    Unknown,
)
from delta_outbox.relay.flight import Held
from delta_outbox.relay.lost import settle_results, settled_part
from delta_outbox.relay.schedule import Kind
from delta_outbox.relay.seats import Seats
from delta_outbox.settings import PublisherSettings, RelaySettings, SecretMapping, Settings
from delta_outbox.settling import LONGEST_PAUSE, Lost, Settling, Unsettled

AT = datetime(2026, 1, 1, tzinfo=UTC)
SKEW = 60.0  # seconds
ASKED: list[Sequence[LostClaim]] = []
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


def recover(claims: Sequence[LostClaim], timeout: float) -> Recovered:
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
def settling(clock: ManualClock, tmp_path: Path) -> Settling:
    """Return one with a destination that knows, one that does not, and one that never could."""
    type_ = f"{__name__}:Knowing"
    publishers = {
        "exact": PublisherSettings(type=type_, settings=SecretMapping({"exactly": True})),
        "plain": PublisherSettings(type=type_, settings=SecretMapping({"exactly": False})),
        "file": PublisherSettings(type="jsonl"),
    }
    relay = RelaySettings(clock_skew_seconds=SKEW)
    return Settling(Settings(relay=relay, publishers=publishers), home=tmp_path, clock=clock)


def lost(
    event_id: str, *, destination: str = "exact", claim_id: str = "c", lifecycle: int = 0
) -> Lost:
    """Return a lost delivery."""
    return Lost(
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
    assert Settling(settings, home=tmp_path, clock=clock).is_asked("orders")


def test_only_who_knows_is_asked(settling: Settling):
    """Other destinations, and one that the settings have no more, cost nothing."""
    names = ["plain", "file", "gone"]
    assert [None] * 3 == settling.settle([lost("e", destination=name) for name in names])
    assert [] == ASKED
    assert [False] * 3 == [settling.is_asked(name) for name in names]
    assert settling.is_asked("exact")


def test_each_delivery_gets_its_own_answer(settling: Settling):
    """What is known is found by claim and delivery: a replay is another delivery; each claim is
    asked about once, from its start less what clocks may differ by.
    """
    KNOWN["c"] = {"e": THERE, "r:1": THERE}
    found = settling.settle(
        [
            *(lost("e"), lost("f"), lost("r"), lost("r", lifecycle=1)),
            *(lost("e", claim_id="other"), lost("e", destination="plain")),
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
    settling: Settling, clock: ManualClock, caplog: pytest.LogCaptureFixture
):
    """As long as the destination cannot say, deliveries are unsettled, and it is asked ever more
    rarely; the first answer settles them.
    """
    AWAY[0] = True
    pauses = []
    for _ in range(9):
        assert [Unsettled()] == settling.settle([lost("e")])
        asked = len(ASKED)
        assert [Unsettled()] == settling.settle([lost("e")])
        assert asked == len(ASKED)
        pauses.append(settling.seconds_to_wait())
        clock.sleep(pauses[-1])
    assert [1, 2, 4, 8, 16, 32, 64, 64, 64] == pauses
    assert LONGEST_PAUSE == pauses[-1]
    assert "canary" not in caplog.text
    AWAY[0] = False
    assert [None] == settling.settle([lost("e")])
    assert 0 == settling.seconds_to_wait()


def test_an_expired_claim_ends_by_what_is_known(settling: Settling):
    """Of claims that are over, what was delivered is Delivered, the rest expired, and what cannot
    be settled keeps its claim while others end.
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
    assert (held, [THERE, LeaseExpired(), LeaseExpired()], False) == settling.of_held(held)
    AWAY[0] = True
    part, ends, left = settling.of_held(held)
    assert ([rows[2]], [LeaseExpired()], True) == (part.to_pylist(), ends, left)
    assert (part, ends, False) == settling.of_held(part)


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
    return Held(kind=Kind.NEW, claim=claim, scopes=[f"scope-{one}" for one in event_ids])


def test_what_came_back_is_believed(settling: Settling):
    """Where no result is lost nobody is asked, and nothing is waited for."""
    held = held_claim("a", "b")
    results: list[EndOfClaim] = [Delivered(), Failed(error="busy")]

    def wait() -> None:
        raise AssertionError

    assert results == settle_results(settling, held.claim, results, wait_until_over=wait)
    assert [] == ASKED
    assert (held, results) == settled_part(held, results)


def test_lost_results_are_settled_after_the_deadline(settling: Settling):
    """Crashed and Unknown are asked about, after nothing can be sent any more; what was not
    delivered stays as it was.
    """
    held = held_claim("a", "b", "c", "d")
    KNOWN["c"] = {"a": THERE, "d": THERE}
    results: list[EndOfClaim] = [Crashed(), Unknown(error="?"), Delivered(), Unknown(error="?")]
    waited: list[int] = []
    found = settle_results(
        settling, held.claim, results, wait_until_over=lambda: waited.append(len(ASKED))
    )
    assert [THERE, Unknown(error="?"), Delivered(), THERE] == found
    assert [0] == waited
    assert 1 == len(ASKED)


def test_what_cannot_be_settled_stays_claimed(settling: Settling):
    """The part of a claim that ends has its own deliveries, policies and scopes, and no others."""
    AWAY[0] = True
    held = held_claim("a", "b", "c")
    results: list[EndOfClaim] = [Crashed(), Delivered(), Crashed()]
    outcomes = settle_results(settling, held.claim, results, wait_until_over=lambda: None)
    assert [Unsettled(), Delivered(), Unsettled()] == outcomes
    part, ends = settled_part(held, outcomes)
    assert [Delivered()] == ends
    assert ["b"] == part.claim.deliveries["event_id"].to_pylist()
    assert (1, ["scope-b"]) == (len(part.claim.policies), part.scopes)


def test_no_two_claims_share_a_seat():
    """A seat is free again once its claim has landed, so that there are few."""
    seats = Seats("relay-1")
    with seats.taken() as one:
        with seats.taken() as two:
            assert ("relay-1.0", "relay-1.1") == (one, two)
        with seats.taken() as again:
            assert two == again
    with seats.taken() as again:
        assert one == again
