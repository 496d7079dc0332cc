"""Which claims are made beside each other, and what each destination may be asked."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_outbox.api import Outbox
from delta_outbox.core.arrow import Mask
from delta_outbox.core.clock import NEVER
from delta_outbox.core.instants import micros
from delta_outbox.core.settings import DestinationLimits, PublisherSettings, RelaySettings, Settings
from delta_outbox.lifecycle.claims import DELIVERIES, Claim, make_claim, new_claim_id
from delta_outbox.lifecycle.endings import Attempted, EndOfClaim
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected
from delta_outbox.lifecycle.states import Reason
from delta_outbox.relay.claim.chooser import IDLE_SECONDS, Chooser
from delta_outbox.relay.claim.flight import Flight, Held
from delta_outbox.relay.destinations import pace
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.destinations.task_runner import TaskRunner
from delta_outbox.relay.plan.window import Kind, Window
from delta_outbox.store.destination_states import KnownStates, OpenBreaker
from delta_outbox.testing.conformance.clock import ManualClock

POLICIES = PolicySet.from_csv(
    "event_type,destination\na,a\nb,b\nboth,a|b\n*,a\n"  # strict, by key, over all destinations
)
Row = tuple[str, str | None]  # event type, ordering key


class States:
    """What is known of destinations, in memory."""

    def __init__(self, clock: ManualClock) -> None:
        """Know nothing."""
        self.clock = clock
        self.paused: frozenset[str] = frozenset()
        self.breakers: dict[str, OpenBreaker] = {}
        self.is_new = False

    def has_news(self) -> bool:
        """Say once that somebody has written."""
        found, self.is_new = self.is_new, False
        return found

    def read(self) -> KnownStates:
        """Return what is known."""
        return KnownStates(paused=self.paused, breakers=dict(self.breakers))

    def record(self, breakers: dict[str, OpenBreaker | None], *, planned_by: str) -> None:
        """Keep it."""
        assert planned_by == "me"
        for name, one in breakers.items():
            self.breakers.pop(name, None)
            if one is not None:
                self.breakers[name] = one

    def breaker(self, *, wait: float, error: str) -> OpenBreaker:
        """Return one that opens now."""
        now = micros(self.clock.now())
        return OpenBreaker(since=now, probe_at=now + round(wait * 1e6), error=error)

    def wait(self, breaker: OpenBreaker) -> float:
        """Return the seconds until a probe."""
        return (breaker.probe_at - micros(self.clock.now())) / 1e6


class Runner(TaskRunner):
    """Runs the tasks of the third party `a`.

    Args:
        room: for so many more.
    """

    def __init__(self, room: int) -> None:
        self.room = room

    @property
    def third_parties(self) -> Collection[str]:
        """Return the third party."""
        return {"a"}

    def allowed(self, deliveries: pa.Table) -> Mask:
        """Say which of them there is room for."""
        return np.arange(deliveries.num_rows) < self.room


class Field:
    """A relay's choices without a relay.

    Args:
        claims: in flight at once.
        limit: of the relay.
        workers: publishing tasks at once.
        limits: of the destination a.
        tasks: runs tasks.
    """

    def __init__(
        self,
        *,
        claims: int = 2,
        limit: int | None = None,
        workers: int = 2,
        limits: dict[str, Any] | None = None,
        tasks: TaskRunner | None = None,
    ) -> None:
        """Serve a and b; nothing completes before it is told to."""
        self.clock = ManualClock()
        self.states = States(self.clock)
        self.may_complete = threading.Event()
        self.settings = Settings(
            relay=RelaySettings(parallelism=workers),
            publishers={
                "a": PublisherSettings(type="null", limits=DestinationLimits(**(limits or {}))),
                "b": PublisherSettings(type="null"),
            },
        )
        self.tasks = tasks
        self.flight = Flight(self._publish, self.clock)
        self.isolation = self.another()
        outbox = SimpleNamespace(
            new_claim=self.new_claim,
            policies_in_force=POLICIES,
            logs=SimpleNamespace(of=lambda _: None),
        )
        self.chooser = Chooser(
            cast("Outbox", outbox),
            self.flight,
            self.isolation,
            claims=claims,
            batch_size=8,
            limit=limit,
            tasks=tasks,
        )

    def another(self, *, knows: Sequence[str] = ("a", "b")) -> Isolation:
        """Return what a relay knows that starts now."""
        outbox = SimpleNamespace(
            settings=self.settings, destinations=self.states, clock=self.clock, worker_id="me"
        )
        isolation = Isolation(cast("Outbox", outbox), self.tasks)
        isolation.know(knows)
        return isolation

    def _publish(self, _: Held) -> list[EndOfClaim]:
        self.may_complete.wait()
        return []

    def new_claim(self, batch: pa.Table) -> Claim:
        """Make a claim."""
        return make_claim(batch, policies=POLICIES, now=self.clock.now(), claim_id=new_claim_id())

    def window(self, *given: Row, failed: Row | None = None) -> Window:
        """Return a window of events `0`, `1`, ..., of which only the last may have failed."""
        rows = [*given, failed] if failed is not None else given
        columns: dict[str, Any] = {
            "event_id": [str(number) for number in range(len(rows))],
            "event_type": [row[0] for row in rows],
            "ordering_key": [row[1] for row in rows],
            "destination": [*[""] * len(given), *[row[0] for row in rows[len(given) :]]],
            "publish_attempts": [*[0] * len(given), *[1] * (len(rows) - len(given))],
            "blocks": [False] * len(rows),
        }
        zeros = dict.fromkeys(("attempts", "publish_attempts", "crashes", "suspect", "arrival"), 0)
        full = {name: columns.get(name, [zeros.get(name)] * len(rows)) for name in DELIVERIES.names}
        table = pa.table(full, schema=DELIVERIES)
        window = Window(table, POLICIES, batch_size=8)
        window.select(now=self.clock.now())
        return window

    def choose(self, window: Window, *, once: bool = False) -> list[Held]:
        """Choose, and let what is to be sent start."""
        chosen: list[Held] = []
        self.chooser.choose(window, chosen, once=once)
        for held in chosen:
            if held.kind is not None:
                self.isolation.started(held.to.split("|"), held.claim)
                self.flight.start(held)
        return chosen

    def complete(self, held: Held, *results: EndOfClaim) -> bool:
        """Say what became of a claim."""
        return self.isolation.completed(held.claim, results, to=held.to)


@pytest.fixture
def fields() -> Iterator[list[Field]]:
    """Take fields; nothing of them is left in flight."""
    made: list[Field] = []
    yield made
    for field in made:
        field.may_complete.set()
        field.flight.close()


def shown(chosen: Sequence[Held]) -> list[tuple[str, list[str], bool]]:
    """Return destination, events, and whether they are sent, of each claim."""
    return [
        (one.to, one.claim.deliveries["event_id"].to_pylist(), not one.is_released)
        for one in chosen
    ]


def test_each_destination_has_a_claim_of_its_own(fields: list[Field]) -> None:
    """What goes to one destination has a claim of its own, in flight beside the others, each on a
    task of its own; what hangs keeps its own only.
    """
    fields.append(field := Field())
    window = field.window(("a", None), ("b", None), ("a", None))
    chosen = field.choose(window)
    assert [("a", ["0", "2"], True), ("b", ["1"], True)] == shown(chosen)
    assert [1, 1] == [one.slices for one in chosen]
    assert [] == field.choose(field.window(("a", None)))


def test_a_claim_holds_what_its_destination_takes_in_seconds(
    fields: list[Field], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many claims as ever are in flight for one that was slow, and they are smaller."""
    monkeypatch.setattr(pace, "LEAST", 1)
    fields.append(field := Field(claims=2))
    given: list[Row] = [*[("a", None)] * 8, ("b", None), ("b", None)]
    (slow, _) = field.choose(field.window(*given))
    results: list[EndOfClaim] = [*[Delivered()] * 4, *[NotSent()] * 4]
    field.isolation.completed(slow.claim, results, to="a", seconds=2 * pace.CLAIM_SECONDS)
    fields.append(after := Field(claims=2, workers=4))
    after.isolation.pace = field.isolation.pace
    chosen = after.choose(after.window(*given))
    sizes = [(one.to, len(one.claim)) for one in chosen]
    assert [("a", 2), ("a", 2), ("b", 2)] == sorted(sizes)


def test_each_task_has_a_claim_of_its_own(fields: list[Field]) -> None:
    """Tasks of a third party are claimed one by one, as many as it is called for at once and as
    there is room for; they take no publishing task from a destination.
    """
    given: list[Row] = [*[("a", None)] * 5, ("b", None), ("b", None)]
    fields.append(field := Field(claims=1, tasks=Runner(room=10), limits={"workers": 3}))
    chosen = field.choose(field.window(*given))
    tasks = [("a", [str(number)], True) for number in range(3)]
    assert [*tasks, ("b", ["5", "6"], True)] == shown(chosen)
    assert 2 == chosen[-1].slices
    assert [] == field.choose(field.window(("a", None)))
    fields.append(field := Field(tasks=Runner(room=1), limits={"rate_per_second": 2}))
    window = field.window(*given[:5])
    assert tasks[:1] == shown(field.choose(window))
    assert [("a", ["1"], True)] == shown(field.choose(window))
    assert [] == field.choose(window)  # its rate lets nothing more pass


@pytest.mark.parametrize(
    ("workers", "lanes", "expected"),
    [(None, 1, 5), (4, 3, 4), (4, 2, 2), (4, 1, 1), (2, 1, 1), (100, 2, 5)],
)
def test_relays_share_the_workers_of_a_third_party(
    fields: list[Field], workers: int | None, lanes: int, expected: int
) -> None:
    """A relay has as many tasks in flight as its part of three lanes gives it, rounded down, and
    one at least; without a setting each has as many as there is room for.
    """
    fields.append(field := Field(tasks=Runner(room=10), limits={"workers": workers}))
    field.isolation.work_on(Fraction(lanes, 3))
    assert expected == len(field.choose(field.window(*[("a", None)] * 5)))


def test_a_part_of_the_lanes_has_that_part_of_a_rate(fields: list[Field]) -> None:
    """Who stands by has none of it, and begins with nothing."""
    fields.append(field := Field(limits={"rate_per_second": 4}))
    isolation = field.isolation
    isolation.work_on(Fraction(1, 2))
    assert 2 == isolation.room("a", 9)
    isolation.work_on(Fraction(0))
    assert (0, NEVER) == (isolation.room("a", 9), isolation.wait(field.clock.monotonic()))
    isolation.work_on(Fraction(1))
    assert (0, 9) == (isolation.room("a", 9), isolation.room("b", 9))
    field.clock.sleep(1)
    assert 4 == isolation.room("a", 9)
    isolation.know(["c"])
    assert 9 == isolation.room("c", 9)  # no limits, no part


@given(st.data())
def test_relays_together_keep_to_a_rate(data: st.DataObject) -> None:
    """However lanes change hands, all relays together send no more than one would."""
    rate, clock = data.draw(st.sampled_from([0.1, 1.0, 4.0, 50.0])), ManualClock()
    settings = Settings(
        publishers={
            "a": PublisherSettings(type="null", limits=DestinationLimits(rate_per_second=rate))
        }
    )
    states = States(clock)
    outbox = SimpleNamespace(settings=settings, destinations=states, clock=clock, worker_id="me")
    relays, lanes = [Isolation(cast("Outbox", outbox)) for _ in range(3)], [0] * 3
    lanes[0] = 4
    for relay, its in zip(relays, lanes, strict=True):
        relay.know(["a"])
        relay.work_on(Fraction(its, 4))
    sent, began = 0, clock.monotonic()
    for _ in range(data.draw(st.integers(0, 20))):
        of, to = data.draw(st.permutations(range(3)))[:2]
        moved = data.draw(st.integers(0, lanes[of]))
        lanes[of] -= moved  # whoever has them shrinks before another grows
        relays[of].work_on(Fraction(lanes[of], 4))
        lanes[to] += moved
        relays[to].work_on(Fraction(lanes[to], 4))
        clock.sleep(data.draw(st.floats(0, 3)))
        for relay in relays:
            if now := relay.room("a", 1000):
                relay._buckets["a"].take(now, clock.monotonic())
                sent += now
        assert sent <= rate * (clock.monotonic() - began) + max(1.0, rate) + 1e-6


def test_tasks_keep_to_the_rate_of_their_key(fields: list[Field]) -> None:
    """A third party is asked for one key no faster than its settings say, and what the rate lets
    pass is claimed as there is room for it.
    """
    given: list[Row] = [("a", "k"), ("a", "k"), ("a", "l"), ("a", None)]
    limits = {"rate_per_key_per_second": 1}
    for room, *expected in ((3, ["0", "2", "3"], []), (2, ["0", "2"], ["3"])):
        fields.append(field := Field(tasks=Runner(room=room), limits=limits))
        window = field.window(*given)
        for claims in expected:
            assert claims == [one for _, (one,), _ in shown(field.choose(window))]


@pytest.mark.parametrize("limit", ["rate_per_second", "rate_per_key_per_second"])
def test_a_rate_that_holds_nothing_back_is_not_waited_for(fields: list[Field], limit: str) -> None:
    """Where hosts have no room, time changes nothing. What a rate held back is waited for, also if
    it would pass by the time that somebody asks.
    """
    fields.append(field := Field(tasks=Runner(room=0), limits={limit: 1}))
    assert [] == field.choose(field.window(("a", "k")))
    assert NEVER == field.isolation.wait(field.clock.monotonic())
    fields.append(field := Field(tasks=Runner(room=3), limits={limit: 1}))
    window = field.window(("a", "k"), ("a", "k"))
    assert 1 == len(field.choose(window))
    since = field.clock.monotonic()
    assert [] == field.choose(window)
    assert 1 == field.isolation.wait(since)
    field.clock.sleep(1)
    assert 0 == field.isolation.wait(since)


def test_one_that_hangs_is_not_waited_for(fields: list[Field]) -> None:
    """While one is in flight for long, it is time to ask what the other could do, also if all that
    is planned for it waits for a key in flight.
    """
    fields.append(field := Field(workers=4, claims=1))
    window = field.window(("a", "k"), *[("a", None)] * 7, ("b", "k"))
    [held] = field.choose(window)
    assert 3 == held.slices  # one is kept for b
    assert not field.chooser.spare(window).is_idle
    field.clock.sleep(IDLE_SECONDS)
    assert field.chooser.spare(window).is_idle
    assert [("b", ["0"], True)] == shown(field.choose(field.window(("b", None))))
    assert not field.chooser.spare(window).is_idle


def test_more_may_be_in_flight_where_any_destination_has_a_slot(fields: list[Field]) -> None:
    """Also one that nothing is planned for: what comes for it need not wait for the others."""
    fields.append(field := Field(workers=4, claims=1))
    window = field.window(*[("a", None)] * 20)
    assert ["a"] == [to for to, _, _ in shown(field.choose(window))]
    assert field.chooser.spare(window).has_slot
    assert ["b"] == [to for to, _, _ in shown(field.choose(field.window(("b", None))))]
    assert not field.chooser.spare(window).has_slot


def test_workers_are_as_many_as_the_settings_say(fields: list[Field]) -> None:
    """A destination gets no more slices than its settings allow, over all of its claims."""
    for asked, got in ((None, [4, 3]), (1, [1]), (2, [1, 1]), (99, [4, 4])):
        fields.append(field := Field(workers=8, limits={"workers": asked}))
        slices = [one.slices for _ in range(3) for one in field.choose(field.window(("a", None)))]
        assert got == slices


def test_the_same_key_waits(fields: list[Field]) -> None:
    """An event waits for an earlier one of its key, although that goes elsewhere."""
    fields.append(field := Field())
    window = field.window(("a", "k"), ("b", "k"), ("b", "other"))
    assert [("a", ["0"], True), ("b", ["2"], True)] == shown(field.choose(window))


def test_claims_beside_each_other_share_no_key(fields: list[Field]) -> None:
    """What one claim does not hold is parted by keys among as many as may be in flight, and so are
    the slices; a key alone is in one claim. What fits into one claim is not parted.
    """
    fields.append(field := Field(workers=5))
    rows: list[Row] = [("a", key) for _ in range(8) for key in ("k", "l", "m")]
    window = field.window(*rows)
    chosen = field.choose(window)
    keys = [set(one.claim.deliveries["ordering_key"].to_pylist()) for one in chosen]
    assert [{"k", "m"}, {"l"}] == keys
    assert [8, 8] == [len(one.claim) for one in chosen]
    assert [2, 2] == [one.slices for one in chosen]  # the fifth is kept for b
    fields.append(field := Field())
    hot = field.window(*[("a", "k")] * 20)
    assert [8] == [len(one.claim) for one in field.choose(hot)]
    assert field.chooser.spare(hot).has_slot
    assert [] == field.choose(hot)
    fields.append(field := Field())
    assert [8] == [len(one.claim) for one in field.choose(field.window(*rows[:8]))]


@pytest.mark.parametrize("claims", [1, 2, 3])
def test_no_more_claims_than_asked_are_in_flight(fields: list[Field], claims: int) -> None:
    """Where there is enough of them, exactly as many claims are in flight as the settings say."""
    fields.append(field := Field(claims=claims, workers=8))
    rows: list[Row] = [("a", None)] * 40
    window = field.window(*rows)
    assert [8] * claims == [len(one.claim) for one in field.choose(window)]
    assert [] == field.choose(window)
    assert 40 - 8 * claims == len(window)


def test_one_slot_is_never_for_retries(fields: list[Field]) -> None:
    """Retries have all slots but one, so that first attempts go on whatever is slow to fail; with
    one slot they take turns.
    """
    for claims, expected in ((2, 1), (3, 2)):
        fields.append(field := Field(claims=claims, workers=8))
        retries = [field.window(failed=("a", key)) for key in ("k", "l", "m")]
        found = [kind for one in retries for kind in field.choose(one)]
        assert expected == len(found)
        assert [1] == [len(one.claim) for one in field.choose(field.window(("a", "n")))]
    fields.append(field := Field(claims=1))
    for _ in range(2):
        both = field.window(("a", None), failed=("a", None))
        kinds = []
        for _ in range(2):
            kinds += [one.kind for one in field.choose(both)]
            field.may_complete.set()
            field.flight.wait(10)
            assert 1 == len(list(field.flight.completed()))
        assert {*Kind} == {*kinds}


def test_an_event_for_both_is_one_claim_while_both_are_well(fields: list[Field]) -> None:
    """Without failures an event for several destinations is one claim."""
    fields.append(field := Field())
    assert [("a|b", ["0", "0", "1", "1"], True)] == shown(
        field.choose(field.window(("both", "k"), ("both", "k")))
    )


@pytest.mark.parametrize("how", ["paused", "open", "failing", "slow"])
def test_an_event_for_both_is_told_apart_when_one_is_not_well(
    fields: list[Field], how: str
) -> None:
    """The well one gets its delivery, the other one is released; of a key only the first, for its
    order holds over both.
    """
    limits: dict[str, Any] = {"rate_per_second": 1} if how == "slow" else {}
    if how == "open":
        limits = {"breaker_failures": 1}
    fields.append(field := Field(limits=limits))
    if how == "paused":
        field.states.paused = frozenset({"a"})
        field.isolation.reload()
    if how in ("open", "failing"):
        [held] = field.choose(field.window(("a", None)))
        field.complete(held, Failed(error="refused"))
    chosen = field.choose(field.window(("both", "k"), ("both", "k"), ("both", None)))
    assert [("a", ["0", "2"], False), ("b", ["0", "2"], True)] == shown(chosen)
    assert 2 == len({one.claim.claim_id for one in chosen})
    assert {"a"} == set(chosen[0].claim.deliveries["destination"].to_pylist())
    assert 2 == len(chosen[0].claim.policies)


def test_parts_of_events_count_as_claims_of_their_destination(fields: list[Field]) -> None:
    """The part of an event for both does not start where the well one has no slot left."""
    fields.append(field := Field(claims=1, workers=8, limits={"rate_per_second": 1000}))
    window = field.window(("b", None), ("both", None))
    assert [("b", ["0"], True)] == shown(field.choose(window))
    fields.append(field := Field(claims=2, workers=8, limits={"rate_per_second": 1000}))
    window = field.window(("b", None), ("both", None))
    parts = [("b", ["0"], True), ("a", ["1"], False), ("b", ["1"], True)]
    assert parts == shown(field.choose(window))


def test_limits_let_one_claim_pass_at_a_time(fields: list[Field]) -> None:
    """Of a destination with limits one claim goes with each append: how much is left of its rate
    is known when that is on record.
    """
    fields.append(field := Field(workers=8, limits={"rate_per_key_per_second": 1}))
    window = field.window(*[("a", None)] * 20)
    for _ in range(2):
        assert [8] == [len(one.claim) for one in field.choose(window)]
    assert [] == field.choose(window)


def test_rates_cut_a_claim(fields: list[Field]) -> None:
    """Of a destination no more than its tokens, of a key no more than its own, and the others are
    not concerned; later there is more.
    """
    fields.append(field := Field(limits={"rate_per_second": 3, "rate_per_key_per_second": 1}))
    window = field.window(
        ("a", "k"), ("a", "k"), ("a", "l"), ("a", None), ("a", None), ("b", None), ("b", "m")
    )
    assert [("a", ["0", "2", "3"], True), ("b", ["5", "6"], True)] == shown(field.choose(window))
    assert 0 < field.isolation.wait(field.clock.monotonic()) <= 1
    field.may_complete.set()
    field.flight.wait(10)
    while field.flight:
        list(field.flight.completed())
    assert [] == field.choose(window)
    field.clock.sleep(1)
    assert [("a", ["1", "4"], True)] == shown(field.choose(window))


def test_a_probe_is_one_delivery(fields: list[Field]) -> None:
    """An open breaker lets nothing pass and says so to all, then one delivery; another relay that
    starts knows as much.
    """
    fields.append(field := Field(limits={"breaker_failures": 2, "breaker_seconds": 10}))
    [held] = field.choose(field.window(("a", None), ("a", None)))
    field.may_complete.set()
    field.flight.wait(10)
    list(field.flight.completed())
    assert field.complete(held, Failed(error="refused"), Failed(error="refused again"))
    assert {"a"} == field.isolation.unavailable()
    assert "refused again" == field.states.breakers["a"].error
    assert 10 == field.isolation.seconds_to_probe()
    restarted = field.another()
    assert {"a"} == restarted.unavailable()
    window = field.window(("a", None), ("a", None))
    assert [] == field.choose(window)
    field.clock.sleep(10)
    assert set() == field.isolation.unavailable() | restarted.unavailable()
    # With nothing to probe, time changes nothing.
    assert NEVER == field.isolation.seconds_to_probe()
    [probe] = field.choose(window)
    assert 1 == len(probe.claim)
    assert [] == field.choose(field.window(("a", None)))
    assert field.complete(probe, Failed(error="still"))
    assert {"a"} == field.isolation.unavailable()
    assert NEVER == field.isolation.seconds_to_probe()
    field.clock.sleep(10)
    field.isolation.started(["a"], probe.claim)
    assert field.complete(probe, Rejected(error="it is there, and does not like it"))
    assert {} == field.states.breakers
    assert set() == field.isolation.unavailable()


def test_what_was_not_tried_is_no_failure(fields: list[Field]) -> None:
    """What was not sent, or whose worker crashed, says nothing of the destination."""
    fields.append(field := Field(limits={"breaker_failures": 1}))
    [held] = field.choose(field.window(("a", None), ("a", None)))
    assert not field.complete(held, NotSent(), Delivered())
    assert not field.complete(held, NotSent(), NotSent())
    assert field.isolation.is_free("a")


def test_a_task_that_expired_unsent_lets_the_next_one_probe(fields: list[Field]) -> None:
    """While a third party was away its tasks have grown too old; each ends without asking it, which
    keeps the breaker open for no longer, and the first that is asked closes it.
    """
    fields.append(field := Field(limits={"breaker_failures": 1, "breaker_seconds": 10}))
    [held] = field.choose(field.window(("a", None)))
    assert field.complete(held, Attempted(reason=Reason.FAILED, error="away"))
    field.clock.sleep(10)
    for reason in (Reason.EXPIRED, Reason.RELEASED, Reason.UNCERTAIN, Reason.EXHAUSTED):
        field.isolation.started(["a"], held.claim)
        assert 0 == field.isolation.room("a", 8)
        ended = Attempted(reason=reason, outcome="late", is_verdict=False)
        assert not field.complete(held, ended)
        assert 1 == field.isolation.room("a", 8)
    field.isolation.started(["a"], held.claim)
    assert field.complete(held, Attempted(reason=Reason.COMPLETED, outcome="paid"))
    assert {} == field.states.breakers


def test_a_row_that_only_looks_like_a_task_closes_no_breaker(fields: list[Field]) -> None:
    """What somebody has inserted as a task is rejected without asking its third party: the breaker
    of that stays open, and its failures in a row are counted on.
    """
    limits = {"breaker_failures": 2, "breaker_seconds": 10}
    fields.append(field := Field(limits=limits, tasks=Runner(room=1)))
    [held] = field.choose(field.window(("a", None)))
    away, stranger = Attempted(reason=Reason.FAILED, error="away"), Rejected(error="no task")
    assert [False, False, True] == [field.complete(held, one) for one in (away, stranger, away)]
    field.clock.sleep(10)
    field.isolation.started(["a"], held.claim)
    assert not field.complete(held, stranger)
    assert (1, {"a"}) == (field.isolation.room("a", 8), set(field.states.breakers))


def test_what_says_nothing_of_a_third_party_opens_no_breaker(fields: list[Field]) -> None:
    """A call that was cut short by the end of its host, and a task that ends as uncertain without
    a call, are no failures of whom they were for; an answer counts whatever came after it.
    """
    fields.append(field := Field(limits={"breaker_failures": 1}))
    [held] = field.choose(field.window(("a", None)))
    for reason in (Reason.UNKNOWN, Reason.UNCERTAIN, Reason.FAILED):
        assert not field.complete(held, Attempted(reason=reason, is_verdict=False))
        assert field.isolation.is_free("a")
    assert field.complete(held, Attempted(reason=Reason.UNKNOWN))
    field.clock.sleep(60)
    field.isolation.started(["a"], held.claim)
    assert field.complete(held, Attempted(reason=Reason.COMPLETED, is_verdict=False))


def test_a_relay_can_do_without_what_is_paused_or_has_a_breaker(fields: list[Field]) -> None:
    """A destination that does not answer stops a relay only if nobody has said what to do."""
    fields.append(field := Field(limits={"breaker_failures": 1}))
    assert field.isolation.tolerates("a", "no connection")
    assert {"a"} == field.isolation.unavailable()
    assert not field.isolation.tolerates("b", "no connection")
    field.states.paused = frozenset({"b"})
    assert field.another().tolerates("b", "no connection")


def test_a_breaker_without_settings_is_closed_for_all(fields: list[Field]) -> None:
    """What a former relay has left open is closed by one whose settings have no breaker."""
    fields.append(field := Field())
    field.states.breakers["a"] = field.states.breaker(wait=100, error="x")
    field.isolation.reload()
    assert ({}, frozenset()) == (field.states.breakers, field.isolation.unavailable())


def test_a_breaker_of_nobody_here_knows_stays_open(fields: list[Field]) -> None:
    """A relay without workflows closes no breaker of a third party, which it has no settings of."""
    fields.append(field := Field(limits={"breaker_failures": 1}))
    field.states.breakers["bank"] = field.states.breaker(wait=100, error="x")
    field.isolation.reload()
    assert {"bank"} == field.states.breakers.keys()


def test_a_breaker_that_others_left_open_is_known_with_its_destination(
    fields: list[Field],
) -> None:
    """A third party, which nothing prepares, is known when something is for it; nothing is taken
    for one that does not answer.
    """
    fields.append(field := Field(tasks=Runner(room=3), limits={"breaker_failures": 1}))
    field.states.breakers["a"] = field.states.breaker(wait=20, error="x")
    field.isolation = starting = field.another(knows=())
    field.chooser._isolation = starting
    assert [] == field.choose(field.window(("a", None)))
    assert {"a"} == starting.unavailable()


def test_relays_tell_each_other_of_breakers(fields: list[Field]) -> None:
    """What one has written down the others follow, each once; their own breakers stay open until
    they have tried themselves.
    """
    fields.append(field := Field(limits={"breaker_failures": 1}))
    assert not field.isolation.follow()
    field.states.breakers["a"] = field.states.breaker(wait=20, error="x")
    field.states.is_new = True
    assert (True, False) == (field.isolation.follow(), field.isolation.follow())
    assert {"a"} == field.isolation.unavailable()
    del field.states.breakers["a"]
    field.states.is_new = True
    assert not field.isolation.follow()
    assert {"a"} == field.isolation.unavailable()


def test_a_breaker_that_was_left_open_stays_open_until_it_is_known(fields: list[Field]) -> None:
    """A relay that starts, and first meets another destination that does not answer, closes none
    of those that it has yet to check.
    """
    fields.append(field := Field(limits={"breaker_failures": 1}))
    field.states.breakers["a"] = field.states.breaker(wait=20, error="x")
    starting = field.another(knows=())
    assert not starting.tolerates("b", "no connection")
    assert {"a"} == field.states.breakers.keys()
    starting.know(["a", "b"])
    assert {"a"} == starting.unavailable()


def test_one_destination_without_limits_is_not_isolated(
    fields: list[Field], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shipped settings cost nothing: no question is asked differently, no state is read."""
    fields.append(field := Field())
    monkeypatch.setattr(field.states, "read", None)
    alone = field.another(knows="a")
    assert not alone.is_isolated
    assert alone.per_destination(batch_size=8, room=80) is None
    with pytest.raises(TypeError, match="not callable"):
        alone.know("b")


def test_a_limit_is_shared(fields: list[Field]) -> None:
    """Of a relay's limit one destination cannot use up all; a single batch takes from the front."""
    fields.append(field := Field(limit=4))
    rows: list[Row] = [*[("a", None)] * 5, *[("b", None)] * 5]
    assert [2, 2] == [len(one.claim) for one in field.choose(field.window(*rows))]
    fields.append(field := Field(limit=4))
    field.chooser._batch_size = 4
    assert [("a", ["0", "1", "2", "3"], True)] == shown(
        field.choose(field.window(*rows), once=True)
    )


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["a", "b", "both"]), st.sampled_from([None, "k", "l"])),
        max_size=16,
    ),
    paused=st.booleans(),
)
def test_order_holds_over_all_destinations(rows: list[Row], paused: bool) -> None:
    """Whatever is chosen, the events of a key are claimed in order, and no later one while an
    earlier one is not delivered everywhere.
    """
    field = Field()
    if paused:
        field.states.paused = frozenset({"a"})
        field.isolation.reload()
    window = field.window(*rows)
    try:
        chosen = field.choose(window)
    finally:
        field.may_complete.set()
        field.flight.close()
    for key in ("k", "l"):
        numbers = [n for n, row in enumerate(rows) if row[1] == key]
        claims = [
            [int(id_) for id_ in one.claim.deliveries["event_id"].to_pylist()] for one in chosen
        ]
        holding = [[n for n in dict.fromkeys(claim) if n in numbers] for claim in claims]
        holding = [claim for claim in holding if claim]
        if holding:
            assert all(holding[0] == other for other in holding)
            assert numbers[: len(holding[0])] == holding[0]
            if paused and any(one.is_released for one in chosen):
                assert all(len(claim) == 1 for claim in holding if rows[claim[0]][0] == "both")
