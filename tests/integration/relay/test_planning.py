"""What workers plan beside each other may be claimed, and nothing is forgotten."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, open_store
from tests.integration.relay.planners import Choice, Judge, Planner, SharedTime, Told

from delta_outbox.api import Outbox
from delta_outbox.core.clock import Clock
from delta_outbox.core.settings import DestinationLimits, PublisherSettings, RelaySettings, Settings
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected
from delta_outbox.projection.projection import ReadView
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.lane_share import LaneShare
from delta_outbox.relay.plan.listing import Listing
from delta_outbox.relay.plan.standby import STANDBY_SECONDS
from delta_outbox.relay.plan.timing import Spare
from delta_outbox.runtime.home import Home
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.open_deliveries import Overview
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMES = int(os.environ.get("OUTBOX_PLANNING_TIMES", "1"))  # so many times the steps
LEASE = 30.0  # seconds, by the policy of all
AGE = 90.0  # seconds
KEYS = (None, "a", "b", "c", "d")
TYPES = ("x", "x", "x", "hold", "aging")
ANSWERS = (Delivered(), Delivered(), Failed(error="no"), NotSent(), Rejected(error="never"))


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each leaves nothing open."""
    with open_store(spark, home, "t_planning") as store:
        store.add_policy("hold", on_dead="hold")
        store.add_policy("aging", expires_after_seconds=str(AGE))
        yield store


@pytest.fixture
def new_play(store: Store) -> Iterator[Callable[..., Play]]:
    """Return what makes a play, which ends with the test."""
    made: list[Play] = []

    def new(name: str, chance: random.Random | None = None) -> Play:
        made.append(Play(store, name, chance))
        return made[-1]

    yield new
    for one in made:
        one.close()


class Play:
    """Workers beside each other.

    Args:
        store: an outbox in which nothing is open.
        name: how the ids of its events begin.
        chance: decides what they do.
    """

    def __init__(self, store: Store, name: str, chance: random.Random | None = None) -> None:
        self.store = store
        self.name = name
        self._chance = chance or random.Random(1)
        # Ahead of the clock by which Delta says when an event was appended.
        self.time = ManualClock(datetime.now(UTC) + timedelta(days=1))
        self.told: list[Told] = []
        self.killed: set[str] = set()
        self.choices: dict[str, Choice] = {}
        self.workers: list[Planner] = []
        self.done = Counter[str]()
        self._is_busy = False
        self._opened: list[Outbox] = []
        self.producer = self.open("producer", self.time)

    def close(self) -> None:
        """Close what was opened."""
        for one in self._opened:
            one.close()

    def open(self, name: str, clock: Clock, *, rate: float | None = None) -> Outbox:
        """Open a store by a clock; its destination has a rate, in events per second."""
        limits = DestinationLimits(rate_per_second=rate)
        settings = Settings(
            relay=RelaySettings(),
            publishers={"default": PublisherSettings(type="null", limits=limits)},
        )
        name = f"{self.name}-{name}"
        self._opened.append(self.store.open(settings, worker_id=name, clock=clock, exclusive=False))
        return self._opened[-1]

    def planner(self, outbox: Outbox, *, batch_size: int) -> Planner:
        """Return a worker."""
        return Planner(outbox, batch_size=batch_size, killed=self.killed, choices=self.choices)

    def append(self, *given: tuple[str, str | None, float | None]) -> None:
        """Append events in one commit: of a type, a key, and available in so many seconds."""
        first = len(self.told)
        new = [
            Told(
                event_id=f"{self.name}-{first + number:04}",
                event_type=kind,
                key=None if key is None else f"{self.name}-{key}",
                available_at=None if wait is None else self.time.now() + timedelta(seconds=wait),
            )
            for number, (kind, key, wait) in enumerate(given)
        ]
        instant = pa.timestamp("us", tz="UTC")
        table = pa.table(
            {
                "event_id": [one.event_id for one in new],
                "event_type": [one.event_type for one in new],
                "payload": [b"{}" for _ in new],
                "ordering_key": pa.array([one.key for one in new], pa.string()),
                "available_at": pa.array([one.available_at for one in new], instant),
            }
        )
        self.producer.append(table).raise_if_rejected()
        self.told += new

    def kill(self, ids: Sequence[str]) -> None:
        """Kill events."""
        self.producer.kill(ids, actor="me", reason="a test", dry_run=False)
        self.killed |= {*ids}

    def drain(self, worker: Planner) -> Counter[str]:
        """Let a worker go on alone, and look at the log when it says that it has to; kill what is
        DEAD and holds its key, also what the worker ends as such itself: it would take up room in
        the windows of other tests. Return how many events ended in which state.
        """
        holding = [one.event_id for one in self.told if one.event_type == "hold"]
        for _ in range(10 * len(self.told) + 20):
            for held in worker.in_flight:
                worker.answer(held, [Delivered()] * len(held.claim))
            if worker.step() or worker.planning.has_work:
                continue
            judge = self.judged()
            states = Counter(judge.state(one.event_id) for one in self.told)
            dead = [name for name in holding if judge.state(name) == "DEAD"]
            if those := [name for name in dead if name not in self.killed]:
                self.kill(those)
                continue
            if {*states} <= {"PUBLISHED", "DEAD"}:
                return states
            seconds = worker.planning.seconds_to_wait()
            assert seconds < math.inf, ("nobody looks at what is open", self._open(judge))
            self.time.sleep(max(seconds, 0.01))
        raise AssertionError("it does not come to an end")

    def _open(self, judge: Judge) -> list[tuple[Told, dict[str, Any] | None]]:
        """Return the events that are open, each with its last transition."""
        ends = {"PUBLISHED", "DEAD"}
        open_ = [one for one in self.told if judge.state(one.event_id) not in ends]
        return [(one, judge.last.get(one.event_id)) for one in open_]

    def judged(self) -> Judge:
        """Demand that all that has won its append was right."""
        judge = Judge(self.told, self.choices, holds={"hold"}, ages={"aging": AGE})
        judge.judge(self.store.transitions(self.name))
        return judge

    # --- by chance -----------------------------------------------------------------------------

    def begin(self, place: int) -> None:
        """Let a worker begin, in the place of one that dies."""
        mine: list[Planner] = []

        def meanwhile() -> None:
            if not self._is_busy and mine and self._chance.random() < 0.02:
                self._is_busy = True
                others = [one for one in self.workers if one is not mine[0]]
                if others and self._chance.random() < 0.5:
                    self.done["beside"] += 1
                    self.act(self._chance.choice(others))
                else:
                    self.time.sleep(self._chance.choice([0.1, 1.0, LEASE / 2, LEASE + 1]))
                self._is_busy = False

        clock = SharedTime(self.time, meanwhile)
        self.done["begun"] += 1
        outbox = self.open(f"worker-{self.done['begun']}", clock)
        mine.append(self.planner(outbox, batch_size=self._chance.choice([1, 2, 5])))
        self.workers[place:] = [mine[0], *self.workers[place + 1 :]]

    def act(self, worker: Planner) -> None:
        """Let a worker do something."""
        flying = worker.in_flight
        if flying and self._chance.random() < 0.5:
            held = self._chance.choice(flying)
            worker.answer(held, [self._chance.choice(ANSWERS) for _ in range(len(held.claim))])
            self.done["answers"] += 1
        else:
            self.done["claims" if worker.step() else "polls"] += 1

    def anything(self) -> None:
        """Let anything happen."""
        dice = self._chance.random()
        if dice < 0.15:
            self.append(*(self._event() for _ in range(self._chance.randint(1, 6))))
        elif dice < 0.3:
            self.time.sleep(self._chance.choice([1.0, 10.0, LEASE + 1]))
        elif dice < 0.34:
            self.begin(self._chance.randrange(len(self.workers)))
        else:
            self.act(self._chance.choice(self.workers))

    def _event(self) -> tuple[str, str | None, float | None]:
        kind = self._chance.choice(TYPES)
        at_once = 0.0 if kind == "aging" else None  # it counts its age from there
        wait = self._chance.choice([at_once, at_once, at_once, at_once, 20.0, 100.0])
        return kind, self._chance.choice(KEYS), wait


@pytest.mark.parametrize("steps", [15, pytest.param(60, marks=pytest.mark.rest)])
def test_what_is_offered_may_be_claimed(new_play: Callable[..., Play], steps: int) -> None:
    """Whatever workers do beside each other, also in the middle of a poll, what one of them offers
    and wins the append of was eligible there; no live claim is ended by another; and in the end
    nothing is left that nobody looks at.
    """
    seed = int(os.environ.get("OUTBOX_PLANNING_SEED", random.randrange(2**32)))
    print(f"OUTBOX_PLANNING_SEED={seed}")  # noqa: T201 - shown if it fails
    play = new_play(f"play-{steps}-{seed}", random.Random(seed))
    play.append(*[("x", key, None) for key in ("a", "a", "b", "b", None)])
    play.begin(0)
    play.workers[0].claim()  # alone: another one might claim all of it meanwhile
    play.begin(1)
    for _ in range(3):
        play.workers[1].step()
    for step in range(times := steps * TIMES):
        if step == times // 2:
            play.kill([one.event_id for one in play.told[-3:]])
        play.anything()
    states = play.drain(play.workers[0])
    print(play.done, states)  # noqa: T201
    assert {"PUBLISHED", "DEAD"} >= {*states}


def test_a_lease_that_is_over_ends_a_plan(new_play: Callable[..., Play]) -> None:
    """A relay with enough to do looks at what another one has lost when the lease is over, not when
    its plan is old or used up.
    """
    play = new_play("lost")
    play.append(("x", "a", None), ("x", "b", None), ("x", "c", None))
    other = play.planner(play.open("other", play.time), batch_size=1)
    other.claim()  # two of them
    worker = play.planner(play.open("worker", play.time), batch_size=1)
    for seconds in (0.0, LEASE - 1):  # its plan is as new as can be
        play.time.sleep(seconds)
        worker.planning.poll(alive=set(), takes_over=True)
    due = []
    for seconds in (0.5, 1.5):
        play.time.sleep(seconds)
        due.append(worker.planning.is_due(Spare(is_idle=False, has_slot=False)))
    assert worker.planning.select() is not None
    assert [False, True] == due
    assert {"PUBLISHED": 3} == play.drain(worker)


@pytest.mark.rest
def test_a_lease_that_is_over_is_looked_for_once(new_play: Callable[..., Play]) -> None:
    """A relay that has listed shortly before a lease of others is over does not poll again and
    again for that.
    """
    play = new_play("once")
    play.append(("x", "a", None), ("x", "b", None), ("x", "c", None))
    other = play.planner(play.open("other", play.time), batch_size=1)
    other.claim()
    worker = play.planner(play.open("worker", play.time), batch_size=1)
    for seconds in (0.0, LEASE - 0.4):
        play.time.sleep(seconds)
        worker.planning.forget()
        worker.planning.poll(alive=set(), takes_over=True)
    due = []
    for seconds in (0.5, 0.6):
        play.time.sleep(seconds)
        due.append(worker.planning.is_due(Spare(is_idle=False, has_slot=False)))
    assert [False, True] == due
    assert {"PUBLISHED": 3} == play.drain(worker)


@pytest.mark.parametrize("behind", [1, 15])
def test_what_others_have_lost_goes_on(
    new_play: Callable[..., Play], monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """A relay ends the claims of one that is gone by what it has listed before, and claims their
    events anew. What comes behind them goes then; it is listed if it was more than a window holds.
    """
    play = new_play(f"back-{behind}")
    play.append(("x", "a", None), ("x", None, None))
    play.planner(play.open("other", play.time), batch_size=1).claim()
    play.append(*[("x", "a", None)] * behind)
    outbox = play.open("worker", play.time)
    worker = play.planner(outbox, batch_size=1)
    worker.planning.poll(alive=set(), takes_over=True)
    open_deliveries, listed = outbox.open_deliveries, list[int]()

    def asked(latest: Mapping[str, int]) -> ReadView:
        listed.append(1)
        return open_deliveries(latest)

    monkeypatch.setattr(outbox, "open_deliveries", asked)
    play.time.sleep(LEASE + 1)
    worker.claim()
    assert [play.told[0].event_id] == worker.in_flight[0].claim.deliveries["event_id"].to_pylist()
    assert not listed
    assert {"PUBLISHED": behind + 2} == play.drain(worker)
    assert (behind > 10) == bool(listed)


@pytest.mark.rest
def test_what_comes_behind_what_died_with_others_is_listed(new_play: Callable[..., Play]) -> None:
    """What the window had no room for, behind an event that has grown too old under the claim of a
    relay that is gone, is not forgotten.
    """
    play = new_play("died")
    play.append(("aging", "a", 0.0), ("x", None, None))
    play.time.sleep(AGE - LEASE)
    play.planner(play.open("other", play.time), batch_size=1).claim()
    play.append(*[("x", "a", None)] * 15)
    worker = play.planner(play.open("worker", play.time), batch_size=1)
    worker.planning.poll(alive=set(), takes_over=True)
    play.time.sleep(LEASE + 1)
    assert {"PUBLISHED": 16, "DEAD": 1} == play.drain(worker)


@pytest.mark.rest
@pytest.mark.parametrize("is_claimed", [False, True])
def test_what_others_have_lost_is_ended_once(
    new_play: Callable[..., Play], monkeypatch: pytest.MonkeyPatch, is_claimed: bool
) -> None:
    """Two relays that see the same lease run out: one ends the claim, and the other, which has
    decided the same just before, has lost, also if the first one has claimed it anew.
    """
    play = new_play(f"both-{is_claimed}")
    play.append(("x", "a", None), ("x", "a", None))
    play.planner(play.open("other", play.time), batch_size=1).claim()
    first = play.planner(play.open("first", play.time), batch_size=1)
    outbox = play.open("second", play.time)
    second = play.planner(outbox, batch_size=1)
    for one in (first, second):
        one.planning.poll(alive=set(), takes_over=True)
    play.time.sleep(LEASE + 1)
    append = outbox.logs.append_endings

    def after_the_first(rows: pa.Table) -> None:
        if is_claimed:
            first.claim()
        else:
            first.step()
        append(rows)

    monkeypatch.setattr(outbox.logs, "append_endings", after_the_first)
    second.step()
    monkeypatch.undo()
    ends = [row for row in play.store.transitions(play.name) if row["reason"] == "lease_expired"]
    assert 1 == len(ends)
    assert {"PUBLISHED": 2} == play.drain(first if is_claimed else second)


@pytest.mark.rest
def test_who_stands_by_polls_for_no_lease(new_play: Callable[..., Play]) -> None:
    """A relay that leaves the work to another one, while its own claim is in flight, leaves to that
    one also what it has listed before.
    """
    play = new_play("leaves")
    play.append(("x", "a", None))
    outbox = play.open("other", play.time)
    heart = Heartbeat(outbox.spark, outbox.tables, relay_id=outbox.worker_id, clock=outbox.clock)
    heart.beat("started")
    other = play.planner(outbox, batch_size=1)
    other.claim()
    worker = play.planner(play.open("worker", play.time), batch_size=1)
    worker.planning.poll(alive={"mine"}, takes_over=True)
    assert {"PUBLISHED": 1} == play.drain(other)
    for seconds in (LEASE + 1, STANDBY_SECONDS + 1):
        worker.planning.poll(alive={"mine"}, takes_over=False)
        play.time.sleep(seconds)
        heart.beat()
    worker.planning.poll(alive={"mine"}, takes_over=False)
    assert 0 == worker.planning.part
    assert not worker.planning.is_due(Spare(is_idle=False, has_slot=False))
    heart.beat("stopped")


@pytest.mark.parametrize(
    ("kind", "answer"),
    [("x", NotSent()), ("hold", Rejected(error="never"))],
)
def test_what_is_killed_in_flight_is_not_sent_again(
    new_play: Callable[..., Play], kind: str, answer: EndOfClaim
) -> None:
    """What is open again after its claim, or DEAD and holds its key, is listed again if an operator
    has asked for something meanwhile: it may be killed.
    """
    play = new_play(f"killed-{kind}")
    play.append(*[(kind, "a", None) for _ in range(2)])
    worker = play.planner(play.open("worker", play.time), batch_size=1)
    worker.claim()
    play.kill([play.told[0].event_id])
    play.time.sleep(1.0)
    worker.step()
    worker.answer(worker.in_flight[0], [answer])
    assert {"DEAD": 1, "PUBLISHED": 1} == play.drain(worker)


@pytest.mark.rest
def test_what_a_read_view_shows_already_is_not_planned_again(
    new_play: Callable[..., Play], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the projection was refreshed after a poll has asked for the latest versions, what is
    open shows more than these; a relay that follows begins after that.
    """
    play = new_play("ahead")
    play.append(("x", "a", None))
    other = play.planner(play.open("other", play.time), batch_size=1)
    other.claim()
    outbox = play.open("worker", play.time)
    worker = play.planner(outbox, batch_size=5)
    read_view = outbox.projection.read_view

    def ahead(**given: Any) -> ReadView:
        monkeypatch.undo()
        play.append(("x", "b", None))
        outbox.refresh()
        return read_view(**given)

    monkeypatch.setattr(outbox.projection, "read_view", ahead)
    worker.step()
    assert {"PUBLISHED": 2} == play.drain(worker)


def test_what_is_rejected_before_a_drain_is_killed_in_it(new_play: Callable[..., Play]) -> None:
    """What waits behind an event that is to hold its key is looked for once that one is killed,
    also if its answer goes on record with the first step of the drain.
    """
    play = new_play("rejected")
    play.append(("hold", "a", None), ("x", "a", None))
    worker = play.planner(play.open("rejected", play.time), batch_size=1)
    worker.claim()
    worker.answer(worker.in_flight[0], [Rejected(error="never")])
    assert {"PUBLISHED": 1, "DEAD": 1} == play.drain(worker)


def test_what_comes_beside_a_long_call_is_seen_soon(new_play: Callable[..., Play]) -> None:
    """While an event is published for long, and the next of its key waits for it, what comes of
    another key is looked for within a second if a claim more may be in flight; if none may, a plan
    holds for longer.
    """
    play = new_play("long")
    play.append(("x", "a", None), ("x", "a", None))
    worker = play.planner(play.open("long", play.time), batch_size=1)
    worker.claim()
    assert [1] == [len(one.claim) for one in worker.in_flight]
    assert worker.planning.select() is not None  # the second one
    play.append(("x", "b", None))
    play.time.sleep(1.0)
    spares = [Spare(is_idle=False, has_slot=has_slot) for has_slot in (True, False)]
    assert [True, False] == [worker.planning.is_due(spare) for spare in spares]
    for _ in range(2):  # it polls, and claims
        worker.step()
    assert 2 == len(worker.in_flight)
    assert {"PUBLISHED": 3} == play.drain(worker)


@pytest.mark.rest
def test_a_lease_counts_from_when_its_claim_was_read(new_play: Callable[..., Play]) -> None:
    """A worker that hangs between asking for the time and reading the log does not take a claim
    that was made meanwhile for an old one.
    """
    play = new_play("hangs")
    play.append(("x", "a", None))
    other = play.planner(play.open("other", play.time), batch_size=1)

    def hang() -> None:
        if not other.in_flight:
            play.time.sleep(LEASE + 1)
            other.claim()

    worker = play.planner(play.open("hangs", SharedTime(play.time, hang)), batch_size=1)
    worker.step()
    assert ["CLAIMED"] == [row["to_state"] for row in play.store.transitions(play.name)]
    assert {"PUBLISHED": 1} == play.drain(other)


def test_a_claim_that_ends_while_it_is_listed_is_not_taken_for_lost(
    new_play: Callable[..., Play], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that takes longer than a lease to read what is open does not end the claim of one
    that has ended it meanwhile, and has made another.
    """
    play = new_play("slow")
    play.append(("x", "a", None), ("x", "b", None))
    other = play.planner(play.open("busy", play.time), batch_size=1)
    other.claim()
    outbox = play.open("slow", play.time)
    overview, ended = outbox.deliveries.overview, list[str]()

    def slow(view: DataFrame) -> Overview:
        found = overview(view)
        play.time.sleep(LEASE + 1)
        if other.in_flight:
            other.answer(other.in_flight[0], [Delivered()])
            other.step()
        return found

    def expire(_: DataFrame, claim_ids: Collection[str], **__: object) -> int:
        ended.extend(claim_ids)
        return 0

    monkeypatch.setattr(outbox.deliveries, "overview", slow)
    monkeypatch.setattr(outbox.expired_claims, "expire", expire)
    worker = play.planner(outbox, batch_size=1)
    worker.step()
    assert [] == ended
    monkeypatch.undo()
    assert {"PUBLISHED": 2} == play.drain(worker)


@pytest.mark.rest
def test_a_lease_that_runs_out_while_it_is_listed_is_asked_for_again(
    new_play: Callable[..., Play],
) -> None:
    """A claim whose lease runs out after those that are over were ended, and before it is known
    when to list again, is not forgotten.
    """
    play = new_play("listed")
    play.append(("x", "a", None))
    other = play.planner(play.open("other", play.time), batch_size=1)
    other.claim()
    outbox = play.open("lists", play.time)
    outbox.policies()
    heart = Heartbeat(outbox.spark, outbox.tables, relay_id=outbox.worker_id, clock=play.time)
    listing = Listing(
        outbox,
        Isolation(outbox),
        LaneShare(outbox, heart),
        LeaseWatch(play.time),
        batch_size=1,
    )
    opened = listing.open(outbox.projection.latest_versions(), at=play.time.monotonic())
    play.time.sleep(LEASE)
    listed = listing.list_open(opened, room=10, in_flight=set(), leaves_untried=True)
    assert listed.others.over_at < math.inf
    assert {"PUBLISHED": 1} == play.drain(other)


@pytest.mark.rest
def test_what_is_too_old_behind_what_waits_is_ended(new_play: Callable[..., Play]) -> None:
    """Events that have grown too old behind one that waits for long are ended, also if they are
    more than a window holds and nothing of their commits was tried.
    """
    play = new_play("old")
    play.append(("x", "a", 3600.0))
    play.append(*[("aging", "a", 0.0)] * 12)
    play.time.sleep(AGE + 1)
    worker = play.planner(play.open("worker", play.time), batch_size=1)
    polls = 0
    for _ in range(40):
        if polls < 4:
            polls += not worker.step()
    assert {"PENDING": 1, "DEAD": 12} == Counter(
        play.judged().state(one.event_id) for one in play.told
    )
    play.time.sleep(3600.0)
    worker.claim()
    worker.answer(worker.in_flight[0], [Delivered()])
    worker.step()
    assert "PUBLISHED" == play.judged().state(play.told[0].event_id)


@pytest.mark.rest
def test_what_waits_for_its_rate_is_left_alone(new_play: Callable[..., Play]) -> None:
    """With more than it may send now, a worker does not poll without a pause for what is unread."""
    play = new_play("rate")
    for _ in range(3):
        play.append(*[("x", None, None)] * 5)
    slow = play.planner(play.open("slow", play.time, rate=1.0), batch_size=2)
    slow.claim()
    slow.answer(slow.in_flight[0], [Delivered()])
    slow.step()
    for _ in range(5):
        slow.step()
    assert not slow.planning.is_due()
    assert {"PUBLISHED": 15} == play.drain(play.planner(play.open("fast", play.time), batch_size=9))
