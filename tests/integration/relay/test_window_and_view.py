"""The window in memory and the SQL of the view `eligible_events` say the same."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType
from tests.integration.outboxes import Store

from delta_outbox.lifecycle.claims import in_order, joined
from delta_outbox.lifecycle.policy import PolicySet, task_policy
from delta_outbox.relay.plan.left_out import LeftOut
from delta_outbox.relay.plan.timing import Timing
from delta_outbox.relay.plan.window import Kind, Window
from delta_outbox.runtime.session import own_session
from delta_outbox.store.open_deliveries import OpenDeliveries, PerDestination
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ALL = 10_000
ARRIVED = 1000  # the commit of the first event that came after the window was listed
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ROWS = PolicySet.parse(
    [
        {"event_type": "loose", "destination": "a", "ordering": "none"},
        {"event_type": "each", "destination": "a|b", "order_scope": "destination"},
        {"event_type": "one", "destination": "b", "order_scope": "destination"},
        {"event_type": "holds", "destination": "c", "on_dead": "hold"},
        {"event_type": "ages", "destination": "c", "expires_after_seconds": 100},
        {"event_type": "both", "destination": "a|c"},
        {"event_type": "*", "destination": "b"},
    ]
)
POLICIES = replace(ROWS, tasks=(task_policy("workflow:w/run", "a", lease_seconds=60),))
TASKS = ["workflow:w/run", "workflow:w/of-others"]


def test_the_window_selects_what_the_view_shows(shared_store: Store) -> None:
    """Whatever is waiting, claimed, DEAD, killed, scheduled or too old, with whatever destinations
    paused: at any time the window has the deliveries that the SQL of `eligible_events` finds, and
    ends those that `endable` finds. So it does, until it is listed again, if it was listed without
    what has to wait, and events have come since; what grows too old there is ended after that.
    """
    seed = int(os.environ.get("OUTBOX_WINDOW_SEED", random.randrange(2**32)))
    print(f"OUTBOX_WINDOW_SEED={seed}")  # noqa: T201 - shown if it fails
    chance = random.Random(seed)
    spark = own_session(shared_store.spark)
    columns = shared_store.spark.table(shared_store.tables.state).schema
    selected, ended, held, left_out = 0, 0, 0, 0
    for unavailable in (frozenset[str](), frozenset({"a"}), frozenset({"b", "c"})):
        clock = ManualClock(NOW)
        asked = OpenDeliveries(
            spark, shared_store.statements, clock=clock, policies=lambda: POLICIES
        )
        rows = [row for number in range(400) for row in _deliveries(number, chance)]
        rows += [_arrival(number, chance) for number in range(400, 440)]
        if "c" in unavailable:  # what is paused and too old is ended before what comes behind it
            rows = [row for row in rows if row["event_type"] != "ages"]
        kind = StructType()
        for name in rows[0]:
            kind = kind.add(name, columns[name].dataType)
        view = spark.createDataFrame([tuple(row.values()) for row in rows], kind)
        listed = asked.listed(view, limit=ALL, in_flight=(), until=NOW + timedelta(days=1))
        assert listed is not None
        window = Window(in_order(listed), POLICIES, batch_size=ALL)
        apart = PerDestination(unavailable=unavailable, each=ALL) if unavailable else None
        cut, again_at = _cut(asked, view, listed, apart, clock)
        assert again_at >= 60
        for seconds in sorted([chance.randrange(60), *chance.sample(range(120), 2)]):
            clock.sleep(seconds - clock.monotonic())
            ends = _names(asked.endable(view))
            found = _names(asked.eligible(view, ALL, per_destination=apart).rows)
            assert (found - ends, ends) == _selected(window, clock, unavailable)
            if seconds < again_at:
                may, must = _selected(cut, clock, unavailable)
                assert found - ends == may
                assert {*(name for name in ends if name not in must)} <= _too_old_since(rows, clock)
                assert must <= ends
                left_out += window.left().num_rows - cut.left().num_rows
            selected, ended = selected + len(found - ends), ended + len(ends)
            held += len(rows) - len(found)
    assert min(selected, ended, held, left_out) > 30  # so that all of it was tried


def test_an_age_lists_again_only_what_grows_too_old(shared_store: Store) -> None:
    """If the window cannot hold all that waits, it is listed again when the first of it is too old
    and due, in a minute at the earliest, and never if nothing of it grows old.
    """
    spark = own_session(shared_store.spark)
    columns = shared_store.spark.table(shared_store.tables.state).schema
    asked = OpenDeliveries(
        spark, shared_store.statements, clock=ManualClock(NOW), policies=lambda: POLICIES
    )
    waits = {**_arrival(0, random.Random(0)), "available_at": None, "state": "PENDING"}
    dead = {**waits, "event_type": "holds", "state": "DEAD", "ordering_key": "k"}
    ages = {**waits, "event_type": "ages"}
    ten = {**ages, "appended_at": NOW - timedelta(seconds=90)}
    too_old = {**ages, "appended_at": NOW - timedelta(days=1)}
    later = {**too_old, "available_at": NOW + timedelta(seconds=300)}
    for rows, seconds in (
        ([dead, too_old], None),
        ([dead, ages], 100),
        ([ages, ten], 60),
        ([later], 300),
        ([{**ages, "kill_command_id": "kill"}], None),
    ):
        kind = StructType()
        for name in rows[0]:
            kind = kind.add(name, columns[name].dataType)
        view = spark.createDataFrame([tuple(row.values()) for row in rows], kind)
        first = asked.first(view, ALL, found=asked.overview(view), may_end=True)
        due = None if first.next_due is None else (first.next_due - NOW).total_seconds()
        assert due == seconds


def _cut(
    asked: OpenDeliveries,
    view: DataFrame,
    listed: pa.Table,
    apart: PerDestination | None,
    clock: ManualClock,
) -> tuple[Window, float]:
    """Return a window of what was open before the arrivals, listed without what has to wait, with
    the arrivals; and when it is to be listed again.
    """
    before = view.where(f"arrival < {ARRIVED}")
    found = asked.overview(before)
    first = asked.first(before, ALL, found=found, may_end=True, per_destination=apart)
    assert first.is_all
    timing = Timing(clock)
    again_at = float("inf") if first.next_due is None else timing.instant_of(first.next_due)
    left_out = LeftOut(first.blocked, again_at=again_at)
    arrivals = listed.filter(pc.greater_equal(listed["arrival"], ARRIVED))
    new = left_out.none_behind(arrivals, POLICIES, timing)
    assert 0 < new.num_rows < arrivals.num_rows
    return Window(in_order(joined(first.rows, new)), POLICIES, batch_size=ALL), left_out.again_at


def _selected(
    window: Window, clock: ManualClock, unavailable: frozenset[str]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return what of a window is eligible now, and what is to be ended."""
    again = Window(window.left(), POLICIES, batch_size=ALL)
    again.select(now=clock.now(), unavailable=unavailable)
    ends = _names(again.take_ends(ALL))
    return _all_of(again), ends


def _too_old_since(rows: list[Mapping[str, Any]], clock: ManualClock) -> set[tuple[str, str]]:
    """Return what has become too old since the clock was started."""
    return {
        (row["event_id"], row["destination"])
        for row in rows
        if row["event_type"] == "ages"
        and NOW < row["appended_at"] + timedelta(seconds=100) <= clock.now()
    }


def _all_of(window: Window) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    while taken := set[tuple[str, str]]().union(*(_names(window.take(kind, ALL)) for kind in Kind)):
        found |= taken
    return found


def _names(deliveries: pa.Table) -> set[tuple[str, str]]:
    pairs = deliveries.select(["event_id", "destination"]).to_pylist()
    return {(row["event_id"], row["destination"]) for row in pairs}


def _deliveries(number: int, chance: random.Random) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of an event: one before its first claim, later one for each destination."""
    first = _delivery(number, chance)
    yield first
    for name in POLICIES.match(first["event_type"]).destinations if first["destination"] else ():
        if name != first["destination"]:
            yield {**first, **_life(chance, was_claimed=True), "destination": name}


def _arrival(number: int, chance: random.Random) -> Mapping[str, Any]:
    """Return a row of an event that nothing has happened to."""
    life = {**_life(chance, was_claimed=False), "kill_command_id": None}
    row = {**_delivery(number, chance), **life, "destination": ""}
    return {**row, "arrival": ARRIVED + number // 7, "appended_at": NOW}


def _delivery(number: int, chance: random.Random) -> Mapping[str, Any]:
    """Return a row of the projection, of one of few keys."""
    kind = chance.choice(["loose", "each", "one", "holds", "ages", "both", "x", *TASKS])
    life = _life(chance, was_claimed=chance.random() < 0.4)
    names = POLICIES.match(kind).destinations
    return {
        "event_id": f"e-{number}",
        "arrival": number // 7,
        "ordinal": chance.choice([None, number % 7]),
        "created_at": NOW - timedelta(seconds=chance.randrange(9)),
        "appended_at": NOW - timedelta(seconds=chance.randrange(120)),
        "event_type": kind,
        "ordering_key": chance.choice([None, *(f"k-{one}" for one in range(60))]),
        "partition_key": None,
        "ambiguous": False,
        "payload_bytes": 1,
        "destination": chance.choice(names) if life["changed_at"] else "",
        "scheduled_at": None,
        "replayed_at": None,
        "kill_actor": None,
        "kill_reason": None,
        **life,
    }


def _life(chance: random.Random, *, was_claimed: bool) -> Mapping[str, Any]:
    """Return the columns that say what has happened to a delivery."""
    state = chance.choices(["PENDING", "CLAIMED", "DEAD"], [6, 1, 1])[0]
    state = state if was_claimed else "PENDING"
    failed = int(was_claimed and chance.random() < 0.5)
    waits = chance.random() < 0.2
    is_claimed = state == "CLAIMED"
    is_killed = chance.random() < 0.05
    return {
        "lifecycle": 1,
        "state": state,
        "attempts": failed,
        "publish_attempts": failed,
        "crashes": 0,
        "suspect": 0,
        "reason": chance.choice(["exhausted", "operator"]) if state == "DEAD" else None,
        "available_at": NOW + timedelta(seconds=chance.randrange(-60, 120)) if waits else None,
        "changed_at": NOW - timedelta(seconds=chance.randrange(60)) if was_claimed else None,
        "claim_id": f"c-{chance.random()}" if is_claimed else None,
        "claimed_at": NOW if is_claimed else None,
        "claimed_by": "another" if is_claimed else None,
        "lease_expires_at": NOW + timedelta(seconds=30) if is_claimed else None,
        "kill_command_id": "kill" if is_killed else None,
    }
