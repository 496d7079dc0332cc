"""The relay when something goes wrong or stops it, and what it takes for an event."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from tests.integration.outboxes import (
    Store,
    as_if_ended,
    check_lives,
    delivered,
    events,
    open_store,
)

from delta_outbox.api import Outbox
from delta_outbox.core.arrow import is_one_of
from delta_outbox.core.errors import BadSettings
from delta_outbox.core.settings import DestinationLimits
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent
from delta_outbox.operations.lanes import LaneRequest, change_lanes
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.planning import Planning
from delta_outbox.relay.plan.standby import STANDBY_SECONDS
from delta_outbox.relay.plan.window import Kind
from delta_outbox.relay.publish.publishing import Publishing
from delta_outbox.runtime.home import Home
from delta_outbox.store import heartbeat
from delta_outbox.store.heartbeat import BEAT_SECONDS, Heartbeat
from delta_outbox.store.lanes import lane_of
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVES_UP_SOON = {
    "max_attempts": "2",
    "lease_seconds": "120",
    "backoff_initial_seconds": "0.01",
    "backoff_jitter": "0",
}


@pytest.fixture(scope="module")
def store(shared_store: Store) -> Store:
    """Return an outbox in which nothing is open; each test leaves it so."""
    shared_store.add_policy("trouble.*", **GIVES_UP_SOON)
    return shared_store


@pytest.fixture
def lanes_store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox whose lanes a test may change."""
    with open_store(spark, home, "t_trouble_lanes") as store:
        yield store


def test_late_ending_is_void(store: Store, tmp_path: Path) -> None:
    """An ending names its claim: once another worker has ended that claim, the result of the
    first comes too late, also if its worker has polled the log in between, says it again, or
    another one says it.
    """
    slow, other = store.outbox(tmp_path / "slow"), store.outbox(tmp_path / "other")
    slow.append(events("late", 2)).raise_if_rejected()
    first = slow.claim(2)
    assert first is not None
    as_if_ended(slow)
    assert 2 == other.release_expired_claims()
    second = other.claim(2)
    assert second is not None
    slow.retrieve(1)
    for worker in (slow, slow, store.outbox(tmp_path / "third")):
        worker.retrieve(1)
        worker.end(first, [Delivered()] * 2)
    other.end(second, [Delivered()] * 2)
    other.end(second, [Failed(error="an answer that is not asked for")] * 2)
    rows = store.transitions("late")
    check_lives(rows)
    assert 2 == sum(row["to_state"] == "PUBLISHED" for row in rows)


@pytest.mark.local
@pytest.mark.parametrize(
    "result",
    [
        pytest.param(Delivered(), id="delivered", marks=pytest.mark.rest),
        pytest.param(NotSent(), id="not_sent"),
    ],
)
def test_a_look_makes_no_late_ending_count(
    result: Delivered | NotSent, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a relay publishes of a claim that another one has ended is void, also if the relay has
    polled the log in between, so that its next append meets nobody; nothing of it is sent again.
    """
    name = type(result).__name__.lower()
    frozen, other = store.outbox(tmp_path / "frozen"), store.outbox(tmp_path / "other")
    frozen.append(events(name, 2)).raise_if_rejected()
    published: list[str] = []
    may_look = Event()

    def publish_late(_: Publishing, claim: Claim, **__: object) -> list[Delivered | NotSent]:
        published.extend(claim.deliveries["event_id"].to_pylist())
        if len(published) > 2:
            return [Delivered()] * len(claim)
        as_if_ended(frozen)
        assert 2 == other.release_expired_claims()
        second = other.claim(2)
        while second is not None:
            other.end(second, [Delivered()] * len(second))
            second = other.claim(2)
        may_look.set()
        until = time.monotonic() + 60
        while frozen.log.sequence < other.log.sequence and time.monotonic() < until:
            time.sleep(0.05)
        return [result] * len(claim)

    monkeypatch.setattr(Publishing, "publish", publish_late)
    monkeypatch.setattr(Planning, "is_due", lambda _, spare=None: not spare or may_look.is_set())
    Relay(frozen).run(Mode.DRAIN)
    rows = store.transitions(name)
    check_lives(rows)
    assert Counter(CLAIMED=4, PENDING=2, PUBLISHED=2) == Counter(row["to_state"] for row in rows)
    assert [f"{name}-000", f"{name}-001"] == published


def test_failures_are_retried_then_dead(store: Store, tmp_path: Path) -> None:
    """A failure is tried again after its back-off and ends DEAD; what was not sent is released,
    costs no attempt of the budget, and is delivered.
    """
    outbox = store.outbox(tmp_path, publisher="tests.integration.relay.trouble:Trouble")
    payloads = [b"fail", b"hold once", b"deliver"]
    outbox.append(
        events("trouble", 3, event_type="trouble.made", payloads=payloads)
    ).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (2, 1, 1, 1, 0) == (
        summary.published,
        summary.dead,
        summary.retried,
        summary.released,
        summary.waiting,
    )
    rows = store.transitions("trouble")
    check_lives(rows)
    lives = {name: [r for r in rows if r["event_id"] == name] for name in store.states("trouble")}
    failed, held, fine = lives["trouble-000"], lives["trouble-001"], lives["trouble-002"]
    assert ["claimed", "failed", "claimed", "exhausted"] == [row["reason"] for row in failed]
    assert [0, 1, 1, 2] == [row["publish_attempts"] for row in failed]
    assert failed[1]["available_at"] is not None  # a back-off may be shorter than a millisecond
    assert failed[2]["occurred_at"] >= failed[1]["available_at"]
    assert "attempt 2 failed" == failed[3]["error"]
    assert ["claimed", "released", "claimed", "delivered"] == [row["reason"] for row in held]
    assert 0 == held[-1]["publish_attempts"]
    assert ["claimed", "delivered"] == [row["reason"] for row in fine]
    dead = store.rows(f"select event_id from {store.tables['dead_letters']}")
    assert [{"event_id": "trouble-000"}] == dead


@pytest.mark.rest
def test_what_waits_behind_a_dead_event_goes_on(store: Store, tmp_path: Path) -> None:
    """With its key's first event DEAD at a retry, the next one is delivered by the same drain."""
    outbox = store.outbox(tmp_path, publisher="tests.integration.relay.trouble:Trouble")
    outbox.append(
        events("behind", 2, keys=1, event_type="trouble.made", payloads=[b"fail", b"deliver"])
    ).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (1, 1, 0) == (summary.published, summary.dead, summary.waiting)
    check_lives(store.transitions("behind"))


def test_once_is_one_batch_within_the_limit(store: Store, tmp_path: Path) -> None:
    """`once` takes one batch, never more than the limit, and from the front."""
    folder = tmp_path / "to"
    outbox = store.outbox(folder)
    outbox.append(events("once", 7)).raise_if_rejected()
    summary = Relay(outbox, limit=3).run(Mode.ONCE)
    assert (3, 3, 4) == (summary.claimed, summary.published, summary.waiting)
    assert {"once-000", "once-001", "once-002"} == {line["event_id"] for line in delivered(folder)}
    assert 4 == Relay(outbox).run(Mode.DRAIN).published


@pytest.mark.rest
def test_idle_relays_do_not_wait_for_each_other(store: Store, tmp_path: Path) -> None:
    """Of two relays that have had nothing to do, exactly the one that began later stands by: it
    leaves what is due to the other, polls again only after a while, and takes it once it is alone.
    """
    stores = [store.outbox(tmp_path) for _ in range(2)]
    hearts = [
        Heartbeat(one.spark, one.tables, relay_id=one.worker_id, clock=one.clock) for one in stores
    ]
    for heart in hearts:
        heart.beat("started")
    assert [[], [stores[0].worker_id]] == [heart.earlier() for heart in hearts]
    stores[0].append(events("idle", 1)).raise_if_rejected()
    second = Planning(stores[1], hearts[1], batch_size=1, isolation=Isolation(stores[1]))
    second.poll(alive=set(), takes_over=False)
    left = second.select()
    assert STANDBY_SECONDS == second.pause()
    hearts[0].beat("stopped")
    assert [] == hearts[1].earlier()
    second.poll(alive=set(), takes_over=False)
    assert (True, False) == (left is None, second.select() is None)
    hearts[1].beat("stopped")
    assert 1 == Relay(stores[1]).run(Mode.DRAIN).published


@pytest.mark.local
def test_beats_that_are_followed_are_those_that_are_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has read the beats of the day once reads what came since from files, and knows the same
    as somebody who reads all of them.
    """
    stores = [store.outbox(tmp_path) for _ in range(3)]
    watching, other, fresh = (
        Heartbeat(one.spark, one.tables, relay_id=one.worker_id, clock=one.clock) for one in stores
    )
    watching.beat("started")
    watching.living()
    with monkeypatch.context() as patch:
        patch.setattr(heartbeat, "_beats", None)
        other.beat("started")
        other.work_on([2, 3])
        other.beat()
        assert (2, 3) == watching.living()[stores[1].worker_id]
        other.work_on([4])
        other.beat()
        followed = watching.living()
        with pytest.raises(TypeError, match="not callable"):
            fresh.living()
    assert followed.items() <= fresh.living().items()
    assert (4,) == followed[stores[1].worker_id]
    for heart in (other, watching):
        heart.beat("stopped")
    assert {*watching.living()} == {stores[0].worker_id}
    assert {*fresh.living()} == {stores[2].worker_id}


@pytest.mark.rest
@pytest.mark.local
def test_new_events_come_before_the_lanes_of_others(
    lanes_store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """A relay that has had nothing to do for a while reads what is new first, and looks at other
    lanes when nothing of that is its own, or all of it is taken. What it had claimed of a lane that
    is another one's by now is left to that one.
    """
    watched, other, producer = (lanes_store.outbox(tmp_path, clock=ManualClock()) for _ in range(3))
    two = LaneRequest(lanes=2, actor="ann", reason="two relays")
    assert change_lanes(other, two, max_wait=60)
    hearts = [
        Heartbeat(one.spark, one.tables, relay_id=one.worker_id, clock=one.clock)
        for one in (other, watched)
    ]
    hearts[0].work_on([1])
    for heart in hearts:
        heart.beat("started")
    planning = Planning(watched, hearts[1], batch_size=10, isolation=Isolation(watched))

    def poll() -> tuple[set[str], int]:
        """Return what may be claimed, all of it, and how many read views were made for it."""
        watched.clock.sleep(STANDBY_SECONDS + 1)
        before = len(read_views)
        planning.poll(alive=set(), takes_over=False)
        window = planning.select()
        rows = window.take(Kind.FIRST_ATTEMPT, 99) if window else pa.table({"event_id": []})
        return {*rows["event_id"].to_pylist()}, len(read_views) - before

    nothing, looks = poll()
    assert (set(), True) == (nothing, looks > 0)
    batch = events("first-", 16, keys=8)
    keys = batch.select(["event_id", "ordering_key"]).to_pylist()
    is_ours = [lane_of(**key, lanes=2) == 0 for key in keys]
    ours, theirs = batch.filter(is_ours), batch.filter([not one for one in is_ours])
    assert 0 < ours.num_rows < 16
    producer.append(ours).raise_if_rejected()
    assert ({*ours["event_id"].to_pylist()}, 0) == poll()
    producer.append(theirs).raise_if_rejected()
    found, looks = poll()
    assert {*theirs["event_id"].to_pylist()}.isdisjoint(found)
    assert looks > 0
    deliveries, view = producer.deliveries, producer.read_view()
    until = deliveries.overview(view).soon
    open_ = deliveries.listed(view, limit=16, in_flight=frozenset(), until=until)
    assert open_ is not None
    planning.requeue(
        "before", open_.filter(is_one_of(open_["event_id"], theirs["event_id"].to_pylist()))
    )
    found, _ = poll()
    assert {*theirs["event_id"].to_pylist()}.isdisjoint(found)
    for heart in hearts:
        heart.beat("stopped")
    assert 16 == Relay(lanes_store.outbox(tmp_path)).run(Mode.DRAIN).published


@pytest.mark.rest
def test_relays_share_the_rate_of_a_destination(lanes_store: Store, tmp_path: Path) -> None:
    """A relay keeps to its part of a rate: to none while it stands by, to half of it on one of two
    lanes, to all of it once the other has gone. Who stands by refreshes no views.
    """
    clock = ManualClock()
    limits = DestinationLimits(rate_per_second=4)

    def opened() -> Outbox:
        worker = lanes_store.outbox(tmp_path, clock=clock)
        default = replace(worker.settings.publishers["default"], limits=limits)
        always = replace(worker.settings.relay, refresh_seconds=0.0)
        worker.settings = replace(worker.settings, relay=always, publishers={"default": default})
        return worker

    def heart_of(worker: Outbox) -> Heartbeat:
        return Heartbeat(worker.spark, worker.tables, relay_id=worker.worker_id, clock=worker.clock)

    first, second, other = opened(), opened(), opened()
    hearts = [heart_of(first), heart_of(second)]
    for heart in hearts:  # the first one began before the second
        heart.beat("started")
        clock.sleep(1)
    other.append(events("awaited-", 1)).raise_if_rejected()
    standing_by = Planning(second, hearts[1], batch_size=10, isolation=Isolation(second))
    standing_by.start()
    standing_by.poll(alive=set(), takes_over=False)
    assert 0 == standing_by.part
    assert standing_by._freshness._running is None  # that is left to the first one
    hearts[0].beat("stopped")
    clock.sleep(STANDBY_SECONDS + 1)
    standing_by.poll(alive=set(), takes_over=False)
    assert 1 == standing_by.part
    hearts[1].beat("stopped")
    assert 1 == Relay(opened()).run(Mode.DRAIN).published

    assert change_lanes(other, LaneRequest(lanes=2, actor="ann", reason="two"), max_wait=60)
    batch = events("rated-", 40, keys=40)
    keys = batch.select(["event_id", "ordering_key"]).to_pylist()
    ours = batch.filter([lane_of(**key, lanes=2) == 0 for key in keys]).slice(0, 8)
    other.append(ours).raise_if_rejected()
    heart = heart_of(other)
    heart.work_on([1])
    heart.beat("started")
    assert 2 == Relay(opened()).run(Mode.DRAIN, max_wait=0).published
    heart.beat("stopped")
    assert 4 == Relay(opened()).run(Mode.DRAIN, max_wait=0).published
    assert 2 == Relay(lanes_store.outbox(tmp_path)).run(Mode.DRAIN).published


def test_in_doubt_a_relay_lists_again(store: Store, tmp_path: Path, read_views: list[str]) -> None:
    """It follows new events; after a kill, under other policies, and after a claim and an ending of
    somebody else it lists what is open, once each.
    """
    clock = ManualClock()
    worker, other = (store.outbox(tmp_path, clock=clock) for _ in range(2))
    heart = Heartbeat(worker.spark, worker.tables, relay_id=worker.worker_id, clock=clock)
    planning = Planning(worker, heart, batch_size=10, isolation=Isolation(worker))
    planning.start()

    def lists() -> bool:
        clock.sleep(1.0)
        before = len(read_views)
        worker.policies()
        planning.poll(alive=set(), takes_over=True)
        return worker.worker_id in read_views[before:]

    other.append(events("doubt", 4, keys=4)).raise_if_rejected()
    lists()
    assert not lists()
    other.append(events("sure", 1)).raise_if_rejected()
    assert not lists()
    other.kill(["doubt-001"], actor="ann", reason="doubt", dry_run=False)
    assert [True, False] == [lists(), lists()]
    store.add_policy("doubted.*", max_attempts="9")
    assert [True, False] == [lists(), lists()]
    claim = other.claim(1)
    assert claim is not None
    assert [True, False] == [lists(), lists()]
    other.end(claim, [Delivered()])
    assert [True, False] == [lists(), lists()]
    assert 3 == Relay(store.outbox(tmp_path)).run(Mode.DRAIN).published


def test_relays_follow_the_breakers_of_others(store: Store, tmp_path: Path) -> None:
    """With its beat a relay learns that another one has opened a breaker; what else is written down
    is no reason to ask, and nothing is asked twice.
    """
    clock = ManualClock()
    worker, other = (store.outbox(tmp_path, clock=clock) for _ in range(2))
    limits = DestinationLimits(breaker_failures=1, breaker_seconds=600)
    default = replace(worker.settings.publishers["default"], limits=limits)
    worker.settings = replace(worker.settings, publishers={"default": default})
    relay = Relay(worker)
    relay._isolation.know(["default"])
    relay._beat()
    assert not worker.destinations.has_news()
    writes = NumberedWrites(other.spark, other.tables, writer="of-others", clock=clock)
    assert writes.append_after(None, {"is": "nothing new here"}, planned_by="other")
    assert not worker.destinations.has_news()
    breaker = other.destinations.breaker(wait=600, error="away")
    other.destinations.record({"default": breaker}, planned_by="other")
    assert frozenset() == relay._isolation.unavailable()
    clock.sleep(BEAT_SECONDS)
    relay._beat()
    assert {"default"} == relay._isolation.unavailable()
    assert not worker.destinations.has_news()
    other.destinations.record({"default": None}, planned_by="other")
    relay._heart.beat("stopped")
    relay._flight.close()


@pytest.mark.rest
def test_what_is_due_much_later_is_listed_again(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """More events than a window holds that are not due for long, with keys and without, take no
    place in it: a relay that has listed them once follows the log, and claims what comes, but not
    what comes behind one of them. They count as open, and are claimed when their time has come.
    """
    clock = ManualClock()
    outbox = store.outbox(tmp_path, clock=clock)
    later = pa.array([clock.now() + timedelta(hours=1)] * 18, pa.timestamp("us", tz="UTC"))
    waits = events("later", 18, keys=18).append_column("available_at", later)
    outbox.append(waits).raise_if_rejected()
    outbox.append(events("later-due", 2)).raise_if_rejected()
    claim = outbox.claim(1)
    assert claim is not None
    outbox.end(claim, [Delivered()])
    heart = Heartbeat(outbox.spark, outbox.tables, relay_id=outbox.worker_id, clock=clock)
    planning = Planning(outbox, heart, batch_size=1, isolation=Isolation(outbox))

    def polled() -> list[str]:
        planning.poll(alive=set(), takes_over=True)
        window = planning.select()
        rows = window.take(Kind.FIRST_ATTEMPT, 9) if window else pa.table({"event_id": []})
        return [*rows["event_id"].to_pylist()]

    assert ["later-due-001"] == polled()
    asked = len(read_views)
    keys = pa.array(["later-key-0", "later-key-2"], pa.string())
    came = events("later-new", 2).set_column(3, "ordering_key", keys)
    outbox.append(came).raise_if_rejected()
    assert ["later-new-001"] == polled()
    assert ([], asked, False) == (polled(), len(read_views), planning.is_all_done)
    clock.sleep(3600)
    assert "later-000" in polled()
    assert len(read_views) > asked
    assert 21 == Relay(outbox).run(Mode.DRAIN).published
    order = [line["event_id"] for line in delivered(tmp_path)]
    assert order.index("later-000") < order.index("later-new-000")


@pytest.mark.rest
@pytest.mark.local
def test_standing_by_costs_nothing_while_the_owner_works(store: Store, tmp_path: Path) -> None:
    """While the log moves, a relay that stands by asks Spark for nothing; once the log has stood
    still for the lease of what the owner holds, it takes over.
    """
    owner = store.outbox(tmp_path)
    hearts = [Heartbeat(owner.spark, owner.tables, relay_id=owner.worker_id, clock=owner.clock)]
    hearts[0].beat("started")
    clock = ManualClock()  # stands at this moment, after the owner's first beat
    other = store.outbox(tmp_path, clock=clock)
    hearts.append(Heartbeat(other.spark, other.tables, relay_id=other.worker_id, clock=clock))
    hearts[1].beat("started")
    owner.append(events("by", 2)).raise_if_rejected()
    standby = Planning(other, hearts[1], batch_size=1, isolation=Isolation(other))
    standby.poll(alive=set(), takes_over=False)
    assert owner.claim(1) is not None
    jobs = other.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    before = jobs()
    for _ in range(3):
        standby.poll(alive=set(), takes_over=False)
    assert (0, None) == (jobs() - before, standby.select())
    clock.sleep(other.policies().shortest_lease)
    standby.poll(alive=set(), takes_over=False)
    assert standby.select() is not None
    for heart in hearts:
        heart.beat("stopped")
    assert 2 == Relay(owner).run(Mode.DRAIN).published


def test_first_copy_is_delivered(store: Store, tmp_path: Path) -> None:
    """An INSERT of a few columns is all that a producer needs, also beside `append`. Of rows with
    one id, in one commit or in several, the first is the event: its payload is delivered, once, and
    nothing of the others.
    """
    folder = tmp_path / "to"
    at = "timestamp_micros(unix_micros(current_timestamp()))"
    # Within one commit the content decides: `a` sorts before `b`.
    store.insert(
        ("copy-1", "x", "b"), ("copy-1", "x", "a"), ("copy-2", "x", "first"), created_at=at
    )
    store.insert(("copy-2", "x", "second"), ("copy-3", "x", "only"))
    outbox = store.outbox(folder)
    outbox.append(events("beside", 1, payloads=[b"{}"])).raise_if_rejected()
    assert 4 == Relay(outbox).run(Mode.DRAIN).published
    store.insert(("copy-3", "x", "later"))
    assert 0 == Relay(outbox).run(Mode.DRAIN).claimed
    payloads = {line["event_id"]: line["payload"] for line in delivered(folder)}
    assert 4 == len(delivered(folder))
    first = {"copy-1": "a", "copy-2": "first", "copy-3": "only", "beside-000": "{}"}
    assert first == payloads


@pytest.mark.rest
@pytest.mark.local
def test_claim_of_a_gone_worker_is_ended(store: Store, tmp_path: Path) -> None:
    """A claim whose worker is gone is ended with one attempt more, and its events are delivered."""
    gone = store.outbox(tmp_path / "gone")
    gone.append(events("gone", 3)).raise_if_rejected()
    assert gone.claim(3) is not None
    as_if_ended(gone)

    summary = Relay(store.outbox(tmp_path / "to")).run(Mode.DRAIN)
    assert (3, 3, 0) == (summary.claimed, summary.published, summary.waiting)
    rows = store.transitions("gone-000")
    check_lives(rows)
    assert ["claimed", "lease_expired", "claimed", "delivered"] == [row["reason"] for row in rows]
    assert [1, 1, 2, 2] == [row["attempt"] for row in rows]
    assert "lease_expired" == rows[1]["error"]
    shown = store.rows(
        f"select attempts, last_error from {store.tables['outbox']} where event_id = 'gone-000'"
    )
    assert [{"attempts": 2, "last_error": "lease_expired"}] == shown


@pytest.fixture
def cloud(store: Store) -> Iterator[str]:
    """Let events of a type go as CloudEvents for the time of a test; return the type."""
    store.add_policy("cloud.*", format="cloudevents-structured")
    yield "cloud.made"
    store.spark.sql(f"delete from {store.tables['policy_rows']} where event_type = 'cloud.*'")


@pytest.mark.rest
def test_events_go_as_cloudevents(store: Store, cloud: str, tmp_path: Path) -> None:
    """What a policy wants as CloudEvents goes as such, other events beside them as they are; what
    has no such form is DEAD with the reason and its key goes on after it. Without the settings
    that it takes nothing is claimed.
    """
    folder = tmp_path / "to"
    table = {"source": "/shop", "extensions": {"tenant": "x"}}
    outbox = store.outbox(folder, further={"cloudevents": table})
    outbox.append(
        pa.table(
            {
                "event_id": ["cloud-0", "cloud-1", "cloud-2", "cloud-raw"],
                "event_type": [cloud, cloud, cloud, "order.created"],
                "payload": [b'{"n": 1.50}', b"{}", b"\xff", b"as it is"],
                "ordering_key": ["k", "k", "k", None],
                "headers": pa.array(
                    [{}, {"ce-id": "false"}, {"content-type": "image/png"}, {"a": "b"}],
                    pa.map_(pa.string(), pa.string()),
                ),
            }
        )
    ).raise_if_rejected()
    with pytest.raises(BadSettings, match=r"publishers\.default: the policy 'cloud\.\*' asks for"):
        Relay(store.outbox(folder)).run(Mode.DRAIN)
    assert [] == store.transitions("cloud")

    summary = Relay(outbox).run(Mode.DRAIN)
    assert (3, 1, 0) == (summary.published, summary.dead, summary.waiting)
    lines = {line["event_id"]: line for line in delivered(folder)}
    assert {"cloud-0", "cloud-2", "cloud-raw"} == set(lines)
    assert ("as it is", {"a": "b"}) == (
        lines["cloud-raw"]["payload"],
        lines["cloud-raw"]["headers"],
    )
    for event_id, data in (("cloud-0", {"n": 1.5}), ("cloud-2", b"\xff")):
        line = lines[event_id]
        message = HTTPMessage(headers=line["headers"], body=line["payload"].encode())
        read = from_http_event(message)
        assert (event_id, cloud, "/shop") == (read.get_id(), read.get_type(), read.get_source())
        assert ("k", "x") == (read.get_extension("partitionkey"), read.get_extension("tenant"))
        assert data == read.get_data()
    rows = store.transitions("cloud")
    check_lives(rows)
    ends = {row["event_id"]: row for row in rows if row["to_state"] in ("PUBLISHED", "DEAD")}
    reason = "it has no form as a CloudEvent: its header 'ce-id' would pass for an attribute"
    assert ("DEAD", reason) == (ends["cloud-1"]["to_state"], ends["cloud-1"]["error"])
    assert ends["cloud-0"]["sequence"] <= ends["cloud-1"]["sequence"] < ends["cloud-2"]["sequence"]
