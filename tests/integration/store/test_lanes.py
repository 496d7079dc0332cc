"""Lanes: how many there are changes, and nothing is lost, overtaken or sent twice for it."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.gates import more
from tests.integration.invariants import build, positions
from tests.integration.operating import clock
from tests.integration.outboxes import (
    Store,
    check_derived,
    check_lives,
    delivered,
    events,
    open_store,
)

from delta_outbox.api import Outbox
from delta_outbox.core.errors import LaneClosed, LogRewound, SequenceTaken
from delta_outbox.delta import log_writer, numbered_writes
from delta_outbox.lifecycle.claims import claim_rows
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.results import Delivered, Failed, Rejected
from delta_outbox.operations.lanes import LaneRequest, change_lanes, describe
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.planning import Planning
from delta_outbox.relay.plan.standby import STANDBY_SECONDS
from delta_outbox.runtime.dbt import check_result
from delta_outbox.runtime.home import Home
from delta_outbox.store.epochs import BEGUN, CLOSING
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.lanes import lane_of
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

WHO: dict[str, Any] = {"actor": "ann", "reason": "to try it"}


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_lanes") as store:
        yield store


def change(outbox: Outbox, lanes: int) -> None:
    """Begin a new epoch."""
    assert change_lanes(outbox, LaneRequest(lanes=lanes, **WHO), max_wait=60)
    assert (lanes, None) == (outbox.logs.epoch.lanes, outbox.logs.epoch.becomes)


def plans(store: Store) -> list[dict[str, Any]]:
    """Return the plans of the lanes, in order."""
    rows = store.rows(
        f"select number, plan from {store.tables.progress} where writer = 'lanes' order by number"
    )
    assert [*range(1, len(rows) + 1)] == [row["number"] for row in rows]
    return [json.loads(row["plan"]) for row in rows]


def check_epochs(store: Store) -> None:
    """Demand that each transition is on the lane of its event, and none of an epoch came after the
    next had begun.
    """
    lanes = {0: 1} | {
        plan["epoch"]: plan["lanes"] for plan in plans(store) if plan["step"] == BEGUN
    }
    keys = {
        row["event_id"]: row["ordering_key"]
        for row in store.rows(f"select event_id, ordering_key from {store.tables.events}")
    }
    rows = store.transitions()
    for row in rows:
        event_id = row["event_id"]
        lane = lane_of(ordering_key=keys[event_id], event_id=event_id, lanes=lanes[row["epoch"]])
        assert lane == row["lane"], row
    by_commit = store.rows(
        f"select _commit_version as version, min(epoch) as least, max(epoch) as most "
        f"from table_changes('{store.tables.transitions}', 1) group by _commit_version "
        "order by version"
    )
    epochs = [one[name] for one in by_commit for name in ("least", "most")]
    assert sorted(epochs) == epochs


def in_order(folder: Path, prefix: str, *, keys: int) -> None:
    """Demand that the events of each key came in order, each once, but for repeated ones."""
    lines = [one["event_id"] for one in delivered(folder) if one["event_id"].startswith(prefix)]
    for key in range(keys):
        its = [int(one[-3:]) for one in lines if int(one[-3:]) % keys == key and key != 2]
        assert sorted(its) == its


def test_the_lanes_change_under_events_in_every_state(store: Store, tmp_path: Path) -> None:
    """From one lane to four and back, with new, failed, dead and replayed events: each is delivered
    in its order, on its lane; who works in the old epoch loses; and no rule is broken.
    """
    folder = tmp_path / "to"
    outbox = store.outbox(folder)
    outbox.append(events("turn", 24, keys=3)).raise_if_rejected()
    claim = outbox.claim(8)
    assert claim is not None
    bad: dict[str, EndOfClaim] = {
        "turn-007": Failed(error="busy"),
        "turn-002": Rejected(error="no"),
    }
    ids = claim.deliveries["event_id"].to_pylist()
    outbox.end(claim, [bad.get(one, Delivered()) for one in ids])
    outbox.replay(state="DEAD", event_ids=["turn-002"], dry_run=False, **WHO)
    outbox.replay(state="PUBLISHED", event_ids=["turn-005"], dry_run=False, **WHO)
    outbox.apply_commands_if_alone()

    # One that has polled, and one whose claim is in flight for longer than its lease.
    late, gone = store.outbox(folder), store.outbox(folder)
    held = gone.claim(2)
    assert held is not None
    polled = late.retrieve(3).deliveries
    watcher = store.outbox(folder, clock=clock(2))
    change(watcher, 4)
    assert [CLOSING, BEGUN] == [plan["step"] for plan in plans(store)]
    assert [] == store.rows(f"select * from {store.tables.state} where state = 'CLAIMED'")

    before = store.transitions()
    assert {"lease_expired"} == {
        row["reason"] for row in before if row["claim_id"] == held.claim_id
    } - {"claimed"}
    # It loses to what came after its poll; it polls again; then nobody can append there any more.
    old = late.log
    with pytest.raises(SequenceTaken):
        old.append(claim_rows(late.new_claim(polled)))
    old.catch_up()
    with pytest.raises(LaneClosed):
        old.append(claim_rows(late.new_claim(polled)))
    gone.end(held, [Delivered()] * 2)
    assert before == store.transitions()
    assert (1, 4) == (late.logs.epoch.number, late.logs.epoch.lanes)

    again = late.claim(2)
    assert again is not None
    late.end(again, [Failed(error="busy")] * len(again))
    outbox.append(events("four", 12, keys=3)).raise_if_rejected()
    summary = Relay(store.outbox(folder, batch_size=4)).run(Mode.DRAIN)
    assert 0 == summary.waiting
    assert {1} < {row["lane"] + 1 for row in store.transitions("four")}
    dead = store.rows(f"select event_id from {store.tables.state} where state <> 'PUBLISHED'")
    assert [] == dead
    shown = store.rows(
        f"select event_id, lane from {store.tables['outbox']} where event_id like 'four-%'"
    )
    lanes = {row["event_id"]: row["lane"] for row in store.transitions("four")}
    assert lanes == {row["event_id"]: row["lane"] for row in shown}

    check_result(build(store, audit="full"))
    change(outbox, 1)
    outbox.append(events("back", 4, keys=3)).raise_if_rejected()
    assert 4 == Relay(outbox).run(Mode.DRAIN).published
    assert {(2, 0)} == {(row["epoch"], row["lane"]) for row in store.transitions("back")}
    for prefix in ("turn", "four", "back"):
        check_lives(store.transitions(prefix))
    assert Counter({f"four-{n:03}": 1 for n in range(12)}) == Counter(
        line["event_id"] for line in delivered(folder) if line["event_id"].startswith("four")
    )
    in_order(folder, "four", keys=3)
    check_epochs(store)
    check_derived(store)
    check_result(build(store))
    assert [True, False] == [plan["whole"] for plan in positions(store)]


class Died(Exception):
    """What a crash looks like here."""


# A lane is closed and the epoch goes on; all are, and the next one is not on record.
DEATHS = [("transitions.committed", 2), *more(("plan.before", 2), ("plan.after", 1))]


@pytest.mark.parametrize(("point", "time"), DEATHS)
def test_a_change_that_died_is_finished_by_the_next(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, time: int
) -> None:
    """Wherever a change ends in the middle, the next worker finishes it, and nothing is lost."""
    prefix = f"died-{point}"
    outbox = store.outbox(tmp_path / "to")
    outbox.append(events(prefix, 6, keys=3)).raise_if_rejected()
    epoch = outbox.logs.epoch.number
    lanes = 5 - outbox.logs.epoch.lanes if outbox.logs.epoch.lanes in (2, 3) else 2
    times = Counter[str]()

    def dies(here: str) -> None:
        times[here] += 1
        if (here, times[here]) == (point, time):
            raise Died

    with monkeypatch.context() as patch:
        patch.setattr(log_writer, "reach", dies)
        patch.setattr(numbered_writes, "reach", dies)
        try:
            change_lanes(outbox, LaneRequest(lanes=lanes, **WHO), max_wait=60)
        except Died:
            pass
        else:  # the first change closes one lane only
            assert (point, 1) == ("transitions.committed", times["transitions.committed"])
    fresh = store.outbox(tmp_path / "to")
    if point == "plan.before":
        claim = fresh.claim(6)
        assert claim is not None
        fresh.end(claim, [Failed(error="busy")] * len(claim))
    elif point == "plan.after":
        change(fresh, lanes)
    assert 0 == Relay(fresh).run(Mode.DRAIN).waiting
    assert (epoch + 1, lanes) == (fresh.logs.epoch.number, fresh.logs.epoch.lanes)
    assert 6 == len({one["event_id"] for one in delivered(tmp_path / "to")})
    check_lives(store.transitions(prefix))
    if point == "plan.before":
        check_epochs(store)


def test_parts_of_a_claim_lose_together(store: Store, tmp_path: Path) -> None:
    """Who has parted his deliveries by the lanes of an epoch that ends meanwhile appends none of
    them by those, and ends them by the new ones.
    """
    outbox, other = store.outbox(tmp_path / "to"), store.outbox(tmp_path / "to")
    change(outbox, 3)
    ids = [f"parts-{n:03}" for n in range(8)]
    outbox.append(events("parts", 8)).raise_if_rejected()
    outbox.kill(ids, dry_run=False, **WHO)
    parted = outbox.logs.parts
    times = Counter[str]()

    def parts(rows: pa.Table) -> list[tuple[TransitionLog, pa.Table]]:
        found = parted(rows)
        times["parted"] += 1
        if times["parted"] == 1:
            assert len(found) > 1
            change(other, 2)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox.logs, "parts", parts)
        assert 8 == outbox.end_what_waits_for_it()
    assert dict.fromkeys(ids, "DEAD") == {
        row["event_id"]: row["to_state"] for row in store.transitions("parts")
    }
    assert {outbox.logs.epoch.number} == {row["epoch"] for row in store.transitions("parts")}
    check_lives(store.transitions("parts"))
    check_epochs(store)


@pytest.mark.local
def test_a_relay_with_all_lanes_plans_by_itself(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """One that works on all lanes reads what is new alone, and asks for a read view once a part of
    them is another's; it takes that over when the other has gone, and its drain comes to an end.
    """
    folder = tmp_path / "to"
    outbox, other, producer = (store.outbox(folder) for _ in range(3))
    change(outbox, 2)
    outbox.apply_commands()  # of other tests: where any wait, a relay begins by a read view
    outbox.refresh()
    read_views.clear()
    producer.append(events("alone", 12, keys=3)).raise_if_rejected()
    assert 12 == Relay(outbox).run(Mode.DRAIN).published
    assert [] == read_views

    heart = Heartbeat(other.spark, other.tables, relay_id=other.worker_id, clock=other.clock)
    heart.work_on([1])
    heart.beat("started")
    batch = events("shared", 12, keys=3)
    producer.append(batch).raise_if_rejected()
    keys = batch.select(["event_id", "ordering_key"]).to_pylist()
    ours = {key["event_id"] for key in keys if lane_of(**key, lanes=2) == 0}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(Relay(store.outbox(folder)).run, Mode.DRAIN)
        ended: list[dict[str, Any]] = []
        while len(ended) < len(ours):
            assert not running.done()
            heart.beat()
            time.sleep(0.2)
            ended = [row for row in store.transitions("shared") if row["to_state"] == "PUBLISHED"]
        assert ours == {row["event_id"] for row in store.transitions("shared")}
        assert not running.done()
        heart.beat("stopped")
        summary = running.result(timeout=120)
    assert (12, 0) == (summary.published, summary.waiting)
    assert [] != read_views
    in_order(folder, "shared", keys=3)
    for prefix in ("alone", "shared"):
        check_lives(store.transitions(prefix))
    check_epochs(store)


@pytest.mark.local
def test_a_relay_with_a_part_of_the_lanes_follows_them(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """What comes to its lanes it reads alone, also while others work on theirs; a read view is made
    again only after a while, to look whether somebody has left them.
    """
    folder = tmp_path / "to"
    outbox, other, producer = (store.outbox(folder) for _ in range(3))
    change(outbox, 2)
    heart = Heartbeat(other.spark, other.tables, relay_id=other.worker_id, clock=other.clock)
    heart.work_on([1])
    heart.beat("started")
    watched = store.outbox(folder, clock=ManualClock())  # no while passes
    stop = threading.Event()
    in_a_row = 0
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(Relay(watched).run, Mode.CONTINUOUS, stop=stop)
        try:
            for turn in range(10):
                before, prefix = len(read_views), f"follow{turn}-"
                batch = events(prefix, 8, keys=4)
                keys = batch.select(["event_id", "ordering_key"]).to_pylist()
                ours = {key["event_id"] for key in keys if lane_of(**key, lanes=2) == 0}
                assert 0 < len(ours) < 8
                producer.append(batch).raise_if_rejected()
                while not ours <= published(store, prefix):
                    assert not running.done()
                    heart.beat()
                    time.sleep(0.1)
                assert ours == published(store, prefix)
                claim = other.claim(8)
                assert claim is not None
                other.end(claim, [Delivered()] * len(claim))
                assert 8 == len(published(store, prefix))
                in_order(folder, prefix, keys=4)
                in_a_row = 0 if watched.worker_id in read_views[before:] else in_a_row + 1
                if in_a_row == 3:
                    break
            producer.append(events("left-", 8, keys=4)).raise_if_rejected()
            while not (left := published(store, "left-")):
                assert not running.done()
                time.sleep(0.1)
        finally:
            stop.set()
            heart.beat("stopped")
        summary = running.result(timeout=120)
    assert (3, 8) == (in_a_row, len(left) + summary.waiting)
    assert summary.waiting == Relay(store.outbox(folder)).run(Mode.DRAIN).published
    check_lives(store.transitions("follow"))
    check_epochs(store)


def published(store: Store, prefix: str) -> set[str]:
    """Return the events that are delivered."""
    return {row["event_id"] for row in store.transitions(prefix) if row["to_state"] == "PUBLISHED"}


@pytest.mark.local
def test_a_relay_with_few_lanes_goes_round(store: Store, tmp_path: Path) -> None:
    """One that may work on one of two lanes at a time delivers what is on both, and says on which
    it works; one batch is not bounded by that.
    """
    folder = tmp_path / "to"
    outbox = store.outbox(folder)
    change(outbox, 2)
    outbox.append(events("few", 8)).raise_if_rejected()
    few = store.outbox(folder)
    relay = dataclasses.replace(few.settings.relay, max_lanes=1)
    few.settings = dataclasses.replace(few.settings, relay=relay)
    summary = Relay(few).run(Mode.DRAIN)
    assert (8, 0) == (summary.published, summary.waiting)
    assert {(0,), (1,)} <= {
        tuple(row["lanes"])
        for row in store.rows(
            f"select lanes from {store.tables.relays} where relay_id = '{few.worker_id}'"
        )
    }
    shown = describe(outbox)
    assert (2, None, 0, 0) == tuple(shown[name] for name in ("lanes", "becomes", "open", "claimed"))


@pytest.mark.local
def test_a_relay_with_few_lanes_waits_while_others_are_busy(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """One that may have less than its share does not go round the lanes of nobody because others
    have something to do on theirs; what comes to a lane of nobody it goes to.
    """
    folder = tmp_path / "to"
    outbox, other = (store.outbox(folder) for _ in range(2))
    change(outbox, 3)
    names = [f"busy-{number}" for number in range(20)]
    on = {lane_of(ordering_key=None, event_id=name, lanes=3): name for name in names}
    theirs = Heartbeat(other.spark, other.tables, relay_id=other.worker_id, clock=other.clock)
    theirs.work_on([1])
    theirs.beat("started")
    store.insert((on[1], "order.created", "{}"))
    clock = ManualClock()
    few = store.outbox(folder, clock=clock)
    relay = dataclasses.replace(few.settings.relay, max_lanes=1)
    few.settings = dataclasses.replace(few.settings, relay=relay)
    ours = Heartbeat(few.spark, few.tables, relay_id=few.worker_id, clock=clock)
    ours.beat("started")
    planning = Planning(few, ours, batch_size=1, isolation=Isolation(few))

    def polled() -> list[str]:
        planning.poll(alive=set(), takes_over=False)
        window = planning.select()
        return [] if window is None else window.left()["event_id"].to_pylist()

    assert [] == polled()
    asked = len(read_views)
    assert ([], asked) == (polled(), len(read_views))
    store.insert((on[2], "order.created", "{}"))
    clock.sleep(STANDBY_SECONDS)
    assert ([], [on[2]]) == (polled(), polled())
    for heart in (theirs, ours):
        heart.beat("stopped")
    assert 2 == Relay(store.outbox(folder)).run(Mode.DRAIN).published
    check_epochs(store)


def test_a_rewound_log_goes_on_in_a_new_epoch(
    spark: SparkSession, home: Home, tmp_path: Path
) -> None:
    """Where what the log has lost is to stay lost, a new epoch is begun, also with claims that
    nobody can end in the old one; and all is delivered, what was lost once more.
    """
    with open_store(spark, home, "t_lanes_rewound") as store:
        folder, log = tmp_path / "to", store.tables.transitions
        store.insert(("one", "x", "p"), ("two", "x", "p"))
        Relay(store.outbox(folder)).run(Mode.DRAIN)
        # To the claim, without its end.
        version = store.rows(f"describe history {log} limit 1")[0]["version"] - 1
        store.spark.sql(f"restore table {log} to version as of {version}")
        store.insert(("three", "x", "p"))
        outbox = store.outbox(folder, clock=clock(2))  # by which the lease is long over
        outbox.refresh(rebuild=True)
        with pytest.raises(LogRewound) as lost:
            Relay(store.outbox(folder)).run(Mode.DRAIN)
        assert "outbox lanes --to" in lost.value.remedy
        change(outbox, 2)
        assert 0 == Relay(outbox).run(Mode.DRAIN).waiting
        assert {"one": 2, "two": 2, "three": 1} == Counter(
            line["event_id"] for line in delivered(folder)
        )
        check_lives(store.transitions())
        check_derived(store)
