"""Events that follow in workflows, written on Delta: each once, whoever writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from order_compensation import Cancelled, order_compensation
from order_creation import order_creation
from scripted import Town
from tests.integration.gates import Gate, play, stop_before
from tests.integration.operating import clock
from tests.integration.outboxes import Store, open_store
from tests.integration.railway.writing import write
from tests.unit.railway.workflow import Check, Checked, change, graph

from delta_outbox.api import Outbox
from delta_outbox.core.clock import Clock, SystemClock
from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT, instant_of, micros
from delta_outbox.delta import log_reader
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.operations import event_life
from delta_outbox.operations.lanes import LaneRequest, change_lanes
from delta_outbox.operations.maintenance.file_retention import RETAIN_HOURS, retention
from delta_outbox.operations.maintenance.purge import Purge
from delta_outbox.operations.maintenance.purge_counts import PurgeCounts
from delta_outbox.operations.maintenance.purge_request import PurgeReport, PurgeRequest
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.testing.workflows import run_workflow
from delta_outbox.workflow_engine import derived_events, range_reader, write_range
from delta_outbox.workflow_engine.derived_events import DerivedEvents, WrittenEvents
from delta_outbox.workflow_engine.instances import Instances, UnknownInstance
from delta_outbox.workflow_engine.workflow_views import workflow_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

_opened: list[Outbox] = []


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox in which orders are workflows; one was requested before they were."""
    with open_store(spark, home, "t_derived_events") as opened:
        request(opened, "early")
        assert WrittenEvents() == writer(opened).step()
        assert [] == plans(opened)
        rows = joined(rows_of(one) for one in (order_creation, order_compensation))
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")
        yield opened
        while _opened:
            _opened.pop().close()


def writer(store: Store, time: Clock | None = None) -> DerivedEvents:
    """Return a writer that has read nothing yet, as of a process that has just begun."""
    _opened.append(store.outbox(Path(), clock=time or SystemClock()))
    return DerivedEvents(_opened[-1])


def request(store: Store, *orders: str, prefix: str = "", ago: str = "0 days") -> None:
    """Append in one commit that orders are requested, and an event that starts nothing."""
    then = f"current_timestamp() - interval {ago}"
    body = '{{"order_id":"{}","customer":"c1","products":["tea"]}}'
    store.insert(
        *((f"{prefix}requested-{one}", "order.requested", body.format(one)) for one in orders),
        (f"{prefix}seen-{orders[0]}", "page.seen", "{}"),
        created_at=then,
        appended_at=then,
    )


def end(
    store: Store,
    reason: str,
    *ids: str,
    outcome: str | None = None,
    at: datetime | None = None,
    epoch: int = 0,
) -> None:
    """Append the claim and the ending of events, as a relay does. What an operator ends is DEAD."""
    listed = ", ".join(f"'{one}'" for one in ids)
    log = TransitionLog(store.spark, store.tables, relay_id="tests", epoch=epoch)
    log.catch_up()
    found = store.rows(
        "select event_id, min(_metadata.row_commit_version) as arrival "
        f"from {store.tables.events} where event_id in ({listed}) group by event_id"
    )
    assert set(ids) == {row["event_id"] for row in found}
    now = at or SystemClock().now()
    claimed = {
        "destination": "default",
        **dict.fromkeys(("lifecycle", "publish_attempts", "crashes", "suspect"), 0),
        **dict.fromkeys(("attempt", "claim_size"), 1),
        "from_state": "PENDING",
        "to_state": "CLAIMED",
        "reason": "claimed",
        "lease_expires_at": now + timedelta(seconds=30),
        "occurred_at": now,
    }
    ended = {
        **claimed,
        "from_state": "CLAIMED",
        "to_state": "PUBLISHED",
        "reason": reason,
        "outcome": outcome,
        "outcome_data": None if outcome is None else json.dumps({"note": "n" * 100}),
        "lease_expires_at": None,
    }
    if reason == "operator":
        ended |= {"to_state": "DEAD", "actor": "ann", "command_id": "kill-1"}
    for given in (claimed, ended):
        rows = [{**row, **given, "claim_id": f"claim-{row['event_id']}"} for row in found]
        log.append(pa.Table.from_pylist(rows))


def plans(store: Store) -> list[dict[str, Any]]:
    """Return the plans of the writer, in order."""
    rows = store.rows(
        f"select number, plan from {store.tables.progress} where writer = 'derived_events' "
        "order by number"
    )
    assert list(range(1, len(rows) + 1)) == [row["number"] for row in rows]
    return [json.loads(row["plan"]) for row in rows]


def written(store: Store, order: str) -> list[tuple[str, str]]:
    """Return what was written for an order: ids and types, as often as they are there."""
    rows = store.rows(
        f"select event_id, event_type from {store.tables.events} "
        f"where event_id like '%-{order}' and event_type like 'workflow:%' "
        f"or event_id like 'workflow:%/{order}' order by created_at, ordinal"
    )
    return [(row["event_id"], row["event_type"]) for row in rows]


def ignored(store: Store, event_id: str) -> list[tuple[str, str | None]]:
    """Return what plans say of a start event that has begun nothing: why, and which instance."""
    found = [one for plan in plans(store) for one in plan["ignored"]]
    return [(one["why"], one["instance"]) for one in found if one["event_id"] == event_id]


def test_an_order_goes_the_way_of_the_kit(store: Store) -> None:
    """A start event and endings lead to the tasks and events of the kit's run, a workflow that ends
    starts the next one, and what was there before workflows were in force starts none.
    """
    town = Town()
    run = run_workflow(
        order_compensation,
        town.tasks(),
        Cancelled(order_id="o1"),
        third_parties=town.parties,
    )
    request(store, "o1")
    own = writer(store)
    assert 1 == write(own)
    end(store, "exhausted", "make-order-o1", outcome="default exit")
    end(store, "delivered", "seen-o1")
    assert 2 == write(own)  # the end, and its compensation
    for passed in run.passed:
        assert passed.cause == "decided"
        end(store, "completed", passed.task_id, outcome=passed.outcome)
        assert 1 == write(own)
    compensation = [(one.task_id, f"workflow:order_compensation/{one.task}") for one in run.passed]
    assert [
        ("make-order-o1", "workflow:order_creation/make_order"),
        ("workflow:order_creation/o1", "order.cancelled"),
        *compensation,
        ("workflow:order_compensation/o1", run.end),
    ] == written(store, "o1")
    assert [] == written(store, "early")
    count = len(plans(store))
    assert [0, 0] == [write(own), write(writer(store))]
    assert count == len(plans(store))


@pytest.mark.parametrize("order", ["abab", pytest.param("aabb", marks=pytest.mark.rest)])
def test_of_two_writers_one_wins(store: Store, order: str) -> None:
    """Two that plan at the same time, or of which one finds the other's plan without its rows,
    write each event once.
    """
    name = f"race-{order}"
    request(store, name)
    own = [writer(store), writer(store)]
    came: list[int] = []

    def part(one: DerivedEvents, gate: Gate) -> None:
        stop_before(one._plans, "append_after", gate)
        stop_before(one._writer, "append", gate)
        came.append(write(one))

    play(order, a=lambda gate: part(own[0], gate), b=lambda gate: part(own[1], gate))
    assert 1 == sum(came)
    assert [(f"make-order-{name}", "workflow:order_creation/make_order")] == written(store, name)


def test_who_loses_to_another_writer_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that others are always faster than ends no relay: it says that there is more, and
    writes when it is the first.
    """
    request(store, "slow")
    own = writer(store)
    monkeypatch.setattr(own._plans, "append_after", lambda *_, **__: None)
    assert WrittenEvents(more=True) == own.step()
    monkeypatch.undo()
    assert 1 == write(own)


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.mark.rest
def test_a_plan_without_rows_is_finished(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds the plan of a writer that was killed writes its rows, as it had planned them,
    though more has come since.
    """
    request(store, "killed")

    def kill(point: str) -> None:
        if point == "derived.before":
            raise Killed

    monkeypatch.setattr(derived_events, "reach", kill)
    dying = writer(store)
    with pytest.raises(Killed):
        dying.step()
    monkeypatch.undo()
    assert [] == written(store, "killed")
    number = len(plans(store))
    request(store, "after-the-kill")
    assert 2 == write(writer(store))
    (row,) = store.rows(
        f"select appended_at, planned_at from {store.tables.events}, {store.tables.progress} "
        f"where event_id = 'make-order-killed' and writer = 'derived_events' and number = {number}"
    )
    assert row["planned_at"] == row["appended_at"]
    assert 0 == write(writer(store))


@pytest.mark.rest
def test_a_killed_task_ends_its_instance(store: Store) -> None:
    """Where an operator kills a task, its instance ends by the default exit; what else they kill
    is followed by nothing.
    """
    request(store, "dead")
    own = writer(store)
    assert 1 == write(own)
    end(store, "operator", "make-order-dead", "seen-dead")
    assert 2 == write(own)  # the end, and its compensation
    (ends,) = store.rows(
        f"select event_type, metadata from {store.tables.events} "
        "where event_id = 'workflow:order_creation/dead'"
    )
    assert ("order.cancelled", "killed") == (ends["event_type"], dict(ends["metadata"])["cause"])


@pytest.mark.rest
def test_what_no_plan_has_made_is_no_task(store: Store) -> None:
    """A row that somebody else appends with the type, the payload and the instant of a task is told
    apart: it cannot be read as a task, and its ending is followed by nothing.
    """
    request(store, "true")
    own = writer(store)
    assert 1 == write(own)
    columns = "event_type, payload, created_at, ordering_key, appended_at"
    for name, appended_at in (("false", "current_timestamp()"), ("again", "appended_at")):
        request(store, name)
        assert 1 == write(own)  # so that the plan before has a next one
        store.spark.sql(
            f"insert into {store.tables.events} (event_id, {columns}) "
            f"select '{name}', event_type, payload, created_at, ordering_key, {appended_at} "
            f"from {store.tables.events} where event_id = 'make-order-true'"
        )
    end(store, "expired", "false", "again", outcome="default exit")
    assert 0 == write(own)
    places = [
        (row["event_id"], row["arrival"])
        for row in store.rows(
            f"select event_id, _metadata.row_commit_version as arrival from {store.tables.events} "
            "where event_id in ('make-order-true', 'false', 'again', 'seen-true')"
        )
    ]
    assert 4 == len(places)
    for reader in (own.tasks, writer(store).tasks):
        assert ["make-order-true"] == [one.task_id for one in reader.read(places).values()]


@pytest.mark.rest
def test_an_instance_is_known_for_good(store: Store) -> None:
    """A second start is an ignored start long after the days for which ids are held against new
    ones, also once all that there was of the instance has been purged; until it has ended, a purge
    leaves it.
    """
    then = clock(-24 * 20)
    request(store, "old", ago="20 days")
    assert 1 == write(writer(store, then))
    end(store, "expired", "make-order-old", outcome="default exit", at=then.now())
    assert 2 == write(writer(store, then))  # the end, and its compensation
    request(store, "old", prefix="again-")
    assert 0 == write(writer(store))
    assert ("second_start", "old") in ignored(store, "again-requested-old")
    ends = ("requested-old", "seen-old", "workflow:order_creation/old")
    end(store, "delivered", *ends, at=then.now())
    end(store, "expired", "release-stock-old", outcome="unclear", at=then.now())
    kept = purge(store, before=then.now() + timedelta(days=1))
    assert ["1 tasks of open instances"] == [one.why for one in kept.choice.kept]
    assert 1 == write(writer(store, then))
    end(store, "delivered", "workflow:order_compensation/old", at=then.now())
    gone = purge(store, before=then.now() + timedelta(days=1))
    assert 6 == gone.removed["outbox_events"]
    assert [] == written(store, "old")
    request(store, "old", prefix="third-")
    assert 0 == write(writer(store))
    assert [("second_start", "old")] == ignored(store, "third-requested-old")
    instances = Instances(_opened[-1])
    for name, why in (("old", "began nothing"), ("workflow:order_creation/old", "purged")):
        with pytest.raises(UnknownInstance, match=why):
            instances.show(name)


def test_an_open_instance_is_not_started_again(spark: SparkSession, home: Home) -> None:
    """A second start of an instance that is open is an ignored start, also where it would give the
    first task another identifier: by what it says, or by a version that came in between.
    """
    with open_store(spark, home, "t_second_starts") as opened:
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        plans = [
            {"version": identifier, "rows": joined([rows_of(graph(changes, first=Check))])}
            for identifier in ("check-{grams}", "checked-{grams}-{visit}")
            for changes in [change(Check, identifier=identifier)]
        ]

        def ready(name: str, grams: int) -> None:
            body = json.dumps({"parcel_id": "p", "grams": grams})
            opened.insert((name, "parcel.ready", body))

        last = writes.append_after(None, plans[0], planned_by="tests")
        ready("first", 5)
        own = writer(opened)
        assert 1 == write(own)
        ready("other", 6)
        assert 0 == write(own)
        ready("third", 7)
        assert 0 == write(writer(opened))
        assert writes.append_after(last, plans[1], planned_by="tests")
        ready("fourth", 8)
        assert 0 == write(writer(opened))
        for name in ("other", "third", "fourth"):
            assert [("second_start", "p")] == ignored(opened, name), name


@pytest.mark.rest
def test_a_start_event_counts_by_the_rows_in_force_when_it_is_read(
    spark: SparkSession, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event of the type by which a workflow starts since a build begins an instance, also where
    the build came while news was read. One of the type by which it started before, which was not
    read by then, is an ignored start. Who finishes the plan of a dead writer finds the same.
    """
    with open_with(spark, home, "t_changed_starts") as opened:
        own = writer(opened)
        ready(opened, "read")
        assert 1 == write(own)
        ready(opened, "unread")
        head, built = own._head, list[str]()
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())

        def build_before(table: str) -> int:
            if table == opened.tables.events and not built:
                built.append(table)
                rows = joined([rows_of(graph(first=Check, starts_on="parcel.packed"))])
                last = next(writes.last())
                assert writes.append_after(last, {"version": "2", "rows": rows}, planned_by="b")
                body = '{"parcel_id":"packed","grams":5}'
                opened.insert(("packed", "parcel.packed", body))
            return head(table)

        def kill(point: str) -> None:
            if point == "derived.before":
                raise Killed

        monkeypatch.setattr(own, "_head", build_before)
        monkeypatch.setattr(derived_events, "reach", kill)
        with pytest.raises(Killed):
            own.step()
        monkeypatch.undo()
        assert 1 == write(writer(opened))
        rows = opened.rows(
            f"select event_type, payload from {opened.tables.events} "
            "where event_type like 'workflow:%' order by created_at"
        )
        instances = [json.loads(row["payload"])["instance"] for row in rows]
        assert ["read", "packed"] == instances
        assert [("starts_on_changed", None)] == ignored(opened, "ready-unread")
        ready(opened, "later")
        assert 0 == write(writer(opened))
        assert [] == ignored(opened, "ready-later")


@contextmanager
def open_with(
    spark: SparkSession, home: Home, schema: str, at: datetime | None = None
) -> Iterator[Store]:
    """Make an outbox in which parcels are checked by people.

    Args:
        spark: the session.
        home: that it belongs to.
        schema: its name.
        at: when workflows were put into force; now if left out.
    """
    with open_store(spark, home, schema) as opened:
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        plan = {"version": "1", "rows": joined([rows_of(graph(first=Check))])}
        assert writes.append_after(None, plan, planned_by="tests", at=at)
        yield opened


def ready(store: Store, *names: str) -> None:
    """Append that parcels are ready."""
    body = '{{"parcel_id":"{}","grams":5}}'
    store.insert(*((f"ready-{one}", "parcel.ready", body.format(one)) for one in names))


@pytest.mark.rest
def test_no_instant_of_a_start_event_stops_the_others(spark: SparkSession, home: Home) -> None:
    """Whatever instants start events have, also in a log of before that refuses none: each begins
    an instance, whose task can be read, expires, and is followed.
    """
    year_999 = micros(datetime(999, 1, 1, tzinfo=UTC))
    given = {
        "first": FIRST_INSTANT,
        "early": year_999,
        "last": LAST_INSTANT,
        "before": FIRST_INSTANT - 1,
        "after": LAST_INSTANT + 1,
    }
    rows = {"well": "current_timestamp(), current_timestamp(), null"}
    for name, number in given.items():
        at = f"timestamp_micros({number})"
        rows |= {
            f"created-{name}": f"{at}, null, null",
            f"appended-{name}": f"current_timestamp(), {at}, null",
            f"available-{name}": f"current_timestamp(), current_timestamp(), {at}",
        }
    body = '{{"parcel_id":"{}","grams":5}}'
    values = [
        f"('ready-{name}', 'parcel.ready', cast('{body.format(name)}' as binary), {instants})"
        for name, instants in rows.items()
    ]
    with open_with(spark, home, "t_start_instants") as opened:
        spark.sql(f"alter table {opened.tables.events} drop constraint instants_in_range")
        spark.sql(
            f"insert into {opened.tables.events} "
            "(event_id, event_type, payload, created_at, appended_at, available_at) "
            f"values {', '.join(values)}"
        )
        own = writer(opened)
        assert len(rows) == write(own)
        found = opened.rows(
            f"select event_id, _metadata.row_commit_version as arrival from {opened.tables.events} "
            "where event_type = 'workflow:shipping/check'"
        )
        read = own.tasks.read([(row["event_id"], row["arrival"]) for row in found])
        assert len(rows) == len(read)
        for task in read.values():
            assert instant_of(0) <= task.created_at <= SystemClock().now()
            assert task.created_at + timedelta(days=1) == task.expires_at
        end(opened, "expired", *(one.task_id for one in read.values()), outcome="default exit")
        assert len(rows) == write(own)
        late = writer(opened)
        assert 0 == write(late)
        for one in (own, late):
            one.close()


@pytest.mark.rest
def test_an_ending_that_was_lost_is_not_followed_twice(spark: SparkSession, home: Home) -> None:
    """Where the transition log was restored, and the next epoch ends a task once more, its instance
    goes on by what had followed the first ending, and by nothing else.
    """
    with open_with(spark, home, "t_lost_endings") as opened:
        ready(opened, "p", "q")
        own = writer(opened)
        assert 2 == write(own)
        before = opened.rows(f"describe history {opened.tables.transitions} limit 1")[0]["version"]
        end(opened, "completed", "shipping-check-p-1", outcome=Checked.AGAIN.value)
        assert 1 == write(own)
        spark.sql(f"restore table {opened.tables.transitions} to version as of {before}")
        outbox = opened.outbox(Path())
        _opened.append(outbox)
        outbox.refresh(rebuild=True)
        asked = LaneRequest(lanes=1, actor="ann", reason="it was restored")
        assert change_lanes(outbox, asked, max_wait=60)
        both = ("shipping-check-p-1", "shipping-check-q-1")
        end(opened, "completed", *both, outcome=Checked.SEND.value, epoch=1)
        late = writer(opened)
        assert 1 == write(late)
        ends = opened.rows(
            f"select event_id from {opened.tables.events} where event_type = 'parcel.sent'"
        )
        assert [{"event_id": "workflow:shipping/q"}] == ends
        for one in (own, late):
            one.close()


@pytest.mark.rest
def test_what_is_purged_later_changes_no_plan(
    spark: SparkSession, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that the first derivation reads are kept until then. Of a plan whose rows are there for
    long nobody needs what was purged when it was made; and a row of strangers that was purged ends
    no instance: that it cannot end is told.
    """
    long_ago = SystemClock().now() - timedelta(days=19)
    with open_with(spark, home, "t_purged_later", at=long_ago - timedelta(days=1)) as opened:
        outbox = opened.outbox(Path())
        _opened.append(outbox)
        outbox.refresh()
        assert retention(outbox)["events"] > 20 * 24
        ready(opened, "p")
        own = writer(opened)
        assert 1 == write(own)
        assert RETAIN_HOURS == retention(outbox)["events"]
        for name, ago in (("seen", "22 days"), ("workflow:shipping/p", "21 days")):
            then = f"current_timestamp() - interval {ago}"
            opened.insert((name, "page.seen", "{}"), created_at=then, appended_at=then)
            end(opened, "delivered", name)
            assert 1 == purge(opened, before=long_ago).removed["outbox_events"]
        ready(opened, "q")
        assert 1 == write(own)
        opened.insert(("seen-1", "page.seen", "{}"))
        opened.insert(("seen-2", "page.seen", "{}"))
        check = "spark.databricks.delta.retentionDurationCheck.enabled"
        spark.conf.set(check, "false")
        try:
            spark.sql(f"optimize {opened.tables.purged}")
            spark.sql(f"vacuum {opened.tables.purged} retain 0 hours")
        finally:
            spark.conf.unset(check)
        monkeypatch.setattr(derived_events, "COMMITS_LOOKED_AT", 1)
        late = writer(opened)
        assert 0 == write(late)
        monkeypatch.undo()
        ends = ("shipping-check-p-1", "shipping-check-q-1")
        end(opened, "completed", *ends, outcome=Checked.SEND.value)
        assert 1 == write(late)
        stranded = plans(opened)[-1]["stranded"]
        assert ["workflow:shipping/p"] == [one["key"] for one in stranded]
        for one in (own, late):
            one.close()


@pytest.mark.rest
def test_a_stranded_instance_is_ended_by_whoever_has_looked(
    spark: SparkSession, home: Home
) -> None:
    """An operator ends it without an event, by name and with a preview: then it counts no more, its
    days may be purged, and nothing follows. It is not ended twice, nor begun again.
    """
    who: dict[str, Any] = {"actor": "ann", "reason": "done by hand"}
    with open_with(spark, home, "t_given_up") as opened:
        opened.insert(("workflow:shipping/p", "page.seen", "{}"))
        ready(opened, "p", "q")
        own = writer(opened)
        assert 2 == write(own)
        end(opened, "completed", "shipping-check-p-1", outcome=Checked.SEND.value)
        assert 0 == write(own)
        outbox = opened.outbox(Path())
        _opened.append(outbox)
        instances = Instances(outbox)

        def kept_days() -> int:
            seen = outbox.projection.known_watermark()
            assert seen is not None
            now = SystemClock().now() + timedelta(days=2)
            counts = PurgeCounts(
                outbox.spark,
                outbox.tables,
                seen,
                applied=0,
                before=now.date(),
                recent_from=now,
            )
            return sum(day.of_open_instances for day in counts.days())

        preview = instances.cancel(["p"], **who)
        assert (["p"], [], None) == (
            [one["instance"] for one in preview.tasks],
            preview.left_out,
            preview.command_id,
        )
        assert "stranded" == instances.show("p")["instance"]["state"]
        assert {"waiting_for_person": 1, "stranded": 1} == workflow_status(outbox)["by_state"]
        assert 2 == kept_days()
        narrowed = instances.cancel(["p"], since=instant_of(0), **who)
        assert ["is stranded"] == [one["refusal"] for one in narrowed.left_out]
        done = instances.cancel(["p", "q"], dry_run=False, **who)
        assert done.command_id is not None
        shown = instances.show("p")
        assert ("ended", None, None) == (
            shown["instance"]["state"],
            shown["instance"]["exit"],
            shown["next"],
        )
        assert shown["instance"]["problem"].endswith(" Ended by ann: done by hand")
        assert 1 == workflow_status(outbox)["open_instances"]
        assert 1 == kept_days()
        (again,) = instances.cancel(["p"], dry_run=False, **who).left_out
        assert "has ended without an event" == again["refusal"]
        command: Any = event_life.show(outbox, done.command_id)["command"]
        statuses = {one["event_id"]: one["status"] for one in command["deliveries"]}
        assert "done" == statuses["shipping-check-p-1"]
        opened.insert(("again", "parcel.ready", '{"parcel_id":"p","grams":5}'))
        assert 1 == write(own)  # the end of q
        assert [("second_start", "p")] == ignored(opened, "again")
        own.close()


def purge(store: Store, *, before: datetime) -> PurgeReport:
    """Purge the days before an instant."""
    _opened.append(store.outbox(Path()))
    purging = Purge(_opened[-1])
    try:
        asked = PurgeRequest(before=before.date(), actor="ann", reason="old", dry_run=False)
        return purging.run(asked)
    finally:
        purging.close()


MORE = 1_000_000  # rows of a commit that are held at once


@pytest.mark.rest
@pytest.mark.parametrize("held", [MORE, 2])
def test_a_large_commit_is_read_in_parts(
    store: Store, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """No numbered write has more start events than it may, and each is begun once."""
    orders = [f"many-{held}-{number}" for number in range(5)]
    request(store, *orders)
    monkeypatch.setattr(write_range, "MOST_NEWS", 2)
    monkeypatch.setattr(range_reader, "MOST_READ", 2)
    monkeypatch.setattr(log_reader, "LARGEST", held)
    before = len(plans(store))
    assert 5 == write(writer(store))
    assert [2, 2, 1] == [plan["rows"] for plan in plans(store)[before:] if plan["rows"]]
    assert [1] * 5 == [len(written(store, order)) for order in orders]


@pytest.mark.rest
@pytest.mark.parametrize(
    ("bound", "most", "held"), [("MOST_NEWS", 2, 2), ("MOST_BYTES", 1300, MORE)]
)
def test_many_endings_are_followed_in_parts(
    store: Store, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, held: int
) -> None:
    """No numbered write has more endings, or more bytes of them, than it may, and each is followed
    once.
    """
    orders = [f"ends-{bound}-{number}" for number in range(5)]
    request(store, *orders)
    assert 5 == write(writer(store))
    end(store, "expired", *(f"make-order-{one}" for one in orders), outcome="default exit")
    monkeypatch.setattr(write_range, bound, most)
    monkeypatch.setattr(range_reader, "MOST_READ", 2)
    monkeypatch.setattr(log_reader, "LARGEST", held)
    assert 10 == write(writer(store))  # the ends, and their compensations
    ends = store.rows(
        "select count(*) as ends, _metadata.row_commit_version as version "
        f"from {store.tables.events} where event_id like 'workflow:order_creation/ends-{bound}-%' "
        "group by version order by version"
    )
    assert [2, 2, 1] == [row["ends"] for row in ends]
    assert [3] * 5 == [len(written(store, order)) for order in orders]
