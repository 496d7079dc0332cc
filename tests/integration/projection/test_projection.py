"""The projection: what is derived step by step equals what is derived at once from the logs."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.outboxes import (
    Store,
    check_derived,
    commit_actions,
    events,
    left_to_spark,
    open_store,
    projected,
)

from delta_outbox.api import Outbox
from delta_outbox.core.settings import PublisherSettings, SecretMapping, Settings
from delta_outbox.delta import log_reader
from delta_outbox.delta.log_reader import LogReader, changes
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.delta.table_files import few_rows
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected
from delta_outbox.projection import projection, tails
from delta_outbox.projection.projection import SHORT_TAIL
from delta_outbox.projection.refresh import Refreshing
from delta_outbox.runtime.dbt import check_result, compile_sql, run_dbt
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_projection") as store:
        yield store


def test_a_rebuild_changes_nothing(store: Store, tmp_path: Path) -> None:
    """Rows derived anew equal those derived step by step: with copies in one commit and in
    several, with every ending (test_rebuild.py: also when the logs were rewritten).
    """
    outbox = store.outbox(tmp_path)
    live_a_little(store, outbox)
    step_by_step = projected(store)
    assert 10 == len(step_by_step)
    outbox.refresh(rebuild=True)
    assert step_by_step == projected(store)

    # And it goes on from there.
    store.insert(("after", "x", "p"), ("copied", "x", "third"))
    outbox.refresh()
    assert "PENDING" == store.states("after")["after"]
    assert 11 == len(store.states())


@pytest.mark.rest
def test_much_news_is_folded_with_what_it_needs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of much news it is asked first whether an id is there twice, and which claims are over; the
    rows are those of a fold that looks for everything. The session is told.
    """
    monkeypatch.setattr(tails, "LARGE_QUERY_ROWS", 2)
    used: list[Mapping[str, str]] = []
    told: list[SparkSession] = []
    monkeypatch.setattr(tails, "use_large_query_mode", told.append)

    fold_inputs = tails.Tails.fold_inputs

    def watched(self: tails.Tails) -> Mapping[str, str]:
        used.append(fold_inputs(self))
        return used[-1]

    monkeypatch.setattr(tails.Tails, "fold_inputs", watched)
    outbox = store.outbox(tmp_path)
    outbox.refresh()

    def refreshed() -> tuple[str, ...]:
        used.clear()
        told.clear()
        outbox.refresh()
        assert told
        (inputs,) = {tuple(one.values()) for one in used}
        return inputs

    def claimed(count: int, result: EndOfClaim | None) -> None:
        claim = outbox.claim(count)
        assert claim is not None
        if result is not None:
            outbox.end(claim, [result] * len(claim))

    outbox.append(events("much", 9)).raise_if_rejected()
    assert ("sole_copies", "sole_transitions") == refreshed()
    claimed(2, Delivered())
    claimed(1, None)
    assert ("no_copies", "sole_transitions") == refreshed()
    outbox.append(events("more", 4)).raise_if_rejected()
    claimed(2, Delivered())
    assert ("sole_copies", "sole_transitions") == refreshed()
    claimed(2, Failed(error="busy"))
    claimed(1, Rejected(error="no"))
    assert ("no_copies", "last_transitions") == refreshed()
    store.insert(("much-001", "x", "earlier"), ("twin", "x", "a"), ("twin", "x", "b"))
    assert ("first_copies", "sole_transitions") == refreshed()
    store.insert(("late-1", "x", "a"), ("late-2", "x", "b"), ("much-002", "x", "earlier"))
    claimed(1, None)
    assert ("first_copies", "sole_transitions") == refreshed()
    told.clear()
    check_derived(store)  # from all that there is
    assert 1 == len(told)


def _ways(
    store: Store, outbox: Outbox
) -> Iterator[tuple[dict[str, list[Any]], list[dict[str, Any]]]]:
    """Yield the last commit of the projection and its rows, as files are appended and as Spark
    writes, of the same news.
    """
    for number, by_files in enumerate((True, False)):
        outbox.refresh()
        store.insert((f"few-{number}", "x", "p"))
        outbox.append(events(f"few-{number}", 3, keys=2)).raise_if_rejected()
        given = () if by_files else (store.tables.state,)
        with left_to_spark(store.spark, *given):
            outbox.refresh()
            version = outbox.projection.latest_version(store.tables.state)
        found = commit_actions(store.spark, store.tables.state, version)
        assert by_files == found["commitInfo"][0]["engineInfo"].startswith("delta-outbox/")
        rows = [row for row in projected(store) if row["event_id"].startswith(f"few-{number}")]
        yield found, rows


@pytest.mark.rest
@pytest.mark.local
def test_few_rows_are_inserted_as_by_spark(store: Store, tmp_path: Path) -> None:
    """Where few new deliveries are all there is, a refresh appends a file, and leaves the words in
    Delta's log, and the rows, that Spark would have left.
    """
    outbox = store.outbox(tmp_path)
    (ours, our_rows), (theirs, their_rows) = _ways(store, outbox)
    assert {"add", "commitInfo", "txn"} == ours.keys() == theirs.keys()
    assert ours["txn"][0]["appId"] == theirs["txn"][0]["appId"]
    tags = [one["commitInfo"][0]["userMetadata"].rpartition("/") for one in (ours, theirs)]
    assert tags[0][0] == tags[1][0]
    assert int(tags[0][2]) < int(tags[1][2])
    (add,) = ours["add"]
    statistics = json.loads(add["stats"])
    assert 4 == statistics["numRecords"] == len(our_rows) == len(their_rows)
    for their_add in theirs["add"]:
        assert their_add["partitionValues"] == add["partitionValues"] == {"state": "PENDING"}
        told = json.loads(their_add["stats"])
        for kind in ("minValues", "maxValues", "nullCount"):
            assert told[kind].keys() == statistics[kind].keys()
    for row, other in zip(our_rows, their_rows, strict=True):
        same = row.keys() - {"event_id", "ordering_key", "arrival", "created_at", "appended_at"}
        assert {name: row[name] for name in same} == {name: other[name] for name in same}
        assert row["created_at"] <= other["created_at"]
    check_derived(store)


@pytest.mark.rest
@pytest.mark.local
def test_few_rows_are_read_as_by_spark(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short tail is read from files, and holds what the change feed says."""
    outbox = store.outbox(tmp_path)
    live_a_little(store, outbox)
    store.insert(("old", "x", "p"), created_at="timestamp'1999-12-31 23:59:59.999999'")
    store.spark.sql(f"optimize {store.tables.events}")
    after = dict.fromkeys(tails.LOGS, 0)
    latest = {**outbox.projection.latest_versions(), "commands": 0}
    with monkeypatch.context() as patched:
        patched.setattr(log_reader, "changes", None)  # nobody asks for it
        tail = tails.Tails(store.spark, store.tables, store.statements)
        tail.between(after, latest)
    for log in ("events", "transitions"):
        feed = store.statements.fill(
            f"{log}_tail",
            arrival="_commit_version",
            source=changes(store.tables[f"outbox_{log}"], after=0, to=latest[log]),
        )
        found = tail.asked(f"select * from outbox_{log}_tail").toArrow().to_pylist()
        assert sorted(store.rows(feed), key=repr) == sorted(found, key=repr)
        assert len(found) > 10
    store.insert(("older", "x", "p"), created_at="timestamp'1969-12-31 23:59:59.999999'")
    to = outbox.projection.latest_version(store.tables.events)
    given: dict[str, Any] = {"columns": ("event_id", "created_at"), "few": 1_000}
    events_log, reader = store.tables.events, LogReader(store.spark)
    rows = reader.relation(events_log, after=0, to=latest["events"], **given)
    assert "outbox_events_rows" == rows
    feed = reader.relation(events_log, after=0, to=to, **given)  # in whichever calendar
    assert changes(events_log, after=0, to=to) == feed


@pytest.fixture
def empty_store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox of its own, without what other tests have left."""
    with open_store(spark, home, "t_replaced") as store:
        yield store


@pytest.mark.rest
def test_what_changes_together_is_replaced(
    empty_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New events that nothing has happened to are written apart, in their order. Where most of what
    may be touched is, all of it is replaced, and what is untouched is put back. The rows are those
    that are derived of everything.
    """
    store = empty_store
    monkeypatch.setattr(tails, "LARGE_QUERY_ROWS", 2)
    monkeypatch.setattr(tails, "BACKLOG", 3)
    ways: list[str] = []
    way = Refreshing._way

    def watched(self: Refreshing) -> str:
        ways.append(way(self))
        return ways[-1]

    monkeypatch.setattr(Refreshing, "_way", watched)
    outbox = store.outbox(tmp_path)

    def ended(count: int, *results: EndOfClaim) -> None:
        claim = outbox.claim(count)
        assert claim is not None
        assert count == len(claim)
        outbox.end(claim, [*results, *[Delivered()] * (count - len(results))])

    for part in range(4):
        outbox.append(events(f"part-{part}", 3)).raise_if_rejected()
    ended(4)
    outbox.refresh()
    files = store.rows(
        f"select collect_set(arrival) as arrivals, count(*) as events from {store.tables.state} "
        "where state = 'PENDING' and event_id >= 'part-2' group by _metadata.file_path"
    )
    assert [(1, 3), (1, 3)] == [(len(file["arrivals"]), file["events"]) for file in files]

    ended(5, Failed(error="busy"))
    assert outbox.claim(1) is not None
    outbox.refresh()  # two events are untouched
    assert ["insert", "replace"] == ways
    states = Counter(store.states("part-").values())
    assert {"PUBLISHED": 8, "PENDING": 3, "CLAIMED": 1} == states
    seen = outbox.projection.known_watermark()
    assert seen is not None
    assert store.outbox(tmp_path).projection._refreshing._apply(seen.plan)  # as one who comes late
    assert 12 == store.spark.table(store.tables.state).count()

    ended(2)
    outbox.append(events("other", 9)).raise_if_rejected()
    outbox.refresh()
    ended(2)
    outbox.refresh()  # seven of nine are untouched
    assert ["replace", "merge"] == ways[-2:]
    check_derived(store)


@pytest.mark.rest
def test_threads_of_one_store_refresh_in_turns(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay refreshes beside its publishing, and again before it replays: both use one session,
    with one view of the folded rows and one number of the write.
    """
    outbox = store.outbox(tmp_path)
    store.insert(("turns-1", "x", "p"))
    run, inside = Refreshing.run, threading.Semaphore(1)
    met: list[bool] = []

    def watched(refreshing: Refreshing, *args: Any, **given: Any) -> NumberedWrite:
        is_alone = inside.acquire(blocking=False)
        met.append(not is_alone)
        try:
            time.sleep(1.0)  # for another one, if that is let in
            return run(refreshing, *args, **given)
        finally:
            if is_alone:
                inside.release()

    monkeypatch.setattr(Refreshing, "run", watched)
    with ThreadPoolExecutor(2) as pool:
        refreshes = [pool.submit(outbox.refresh, touch=True) for _ in range(2)]
    assert [False, False] == met
    assert 2 == len({refresh.result() for refresh in refreshes})
    assert {"turns-1": "PENDING"} == store.states("turns")


def live_a_little(store: Store, outbox: Outbox) -> None:
    """Append events, copies among them, and end claims in every way, refreshing in between."""
    store.insert(("same", "x", "b"), ("same", "y", "a"), ("copied", "x", "first"))
    outbox.append(events("e", 7, keys=2)).raise_if_rejected()
    outbox.refresh()
    store.insert(("copied", "x", "second"), ("new", "x", "p"))
    claim = outbox.claim(5)
    assert claim is not None
    outbox.refresh()
    results: list[EndOfClaim] = [
        Delivered(),
        Failed(error="busy"),
        Rejected(error="no"),
        NotSent(),
        Delivered(),
    ]
    outbox.end(claim, results)
    store.insert(("e-000", "x", "late copy"))
    outbox.refresh()
    assert outbox.claim(2) is not None
    outbox.refresh()


def rewrite(store: Store) -> None:
    """Compact both logs and remove what the compaction replaced."""
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    store.spark.conf.set(check, "false")
    try:
        for log in (store.tables.events, store.tables.transitions):
            store.spark.sql(f"optimize {log}")
            store.spark.sql(f"vacuum {log} retain 0 hours")
    finally:
        store.spark.conf.unset(check)


@pytest.mark.rest
def test_refreshers_beside_each_other(store: Store, tmp_path: Path) -> None:
    """Refreshes beside each other never fail and write nothing twice."""
    outboxes = [store.outbox(tmp_path) for _ in range(2)]
    outboxes[0].append(events("beside", 6)).raise_if_rejected()
    with ThreadPoolExecutor(2) as pool:
        plans = list(pool.map(lambda outbox: outbox.refresh(), outboxes))
    assert len(plans) == 2
    rows = store.rows(
        f"select event_id, count(*) as n from {store.tables.state} "
        "where startswith(event_id, 'beside') group by event_id"
    )
    assert [1] * 6 == [row["n"] for row in rows]


@pytest.mark.rest
def test_dbt_and_the_store_refresh_the_same(
    spark: SparkSession, home: Home, tmp_path: Path
) -> None:
    """A refresh by dbt gives the rows that are derived anew: of events that nothing has happened
    to beside some that were claimed, ended, killed, replayed or told apart by destination.
    """
    who: dict[str, Any] = {"actor": "me", "reason": "because", "dry_run": False}

    def refresh_by_dbt() -> list[dict[str, Any]]:
        check_result(run_dbt(["run", "-s", "outbox_state"], home=home, schema=store.tables.schema))
        by_dbt = projected(store)
        last = store.rows(
            f"select max_by(planned_by, number) as who from {store.tables.progress} "
            "where writer = 'projection'"
        )
        assert last[0]["who"].startswith("dbt ")
        outbox.refresh(rebuild=True)
        assert by_dbt == projected(store)
        return by_dbt

    with open_store(spark, home, "t_projection_by_dbt") as store:
        store.add_policy("both.*", destination="default|other")
        one = PublisherSettings(type="null", settings=SecretMapping({}))
        settings = Settings(publishers={"default": one, "other": one})
        outbox = store.open(settings)
        outbox.append(events("e", 9)).raise_if_rejected()
        outbox.append(events("b", 2, event_type="both.made")).raise_if_rejected()
        store.insert(("same", "x", "b"), ("same", "y", "a"), ("copied", "x", "first"))
        assert 13 == len(refresh_by_dbt())

        ended, held = outbox.claim(5), outbox.claim(20)
        assert ended is not None
        assert held is not None
        outbox.append(events("e2", 3)).raise_if_rejected()
        assert {"CLAIMED", "PENDING"} == {row["state"] for row in refresh_by_dbt()}

        killed = held.deliveries["event_id"][0].as_py()
        outbox.kill([killed], **who)  # waits for the end of the claim
        store.insert(("copied", "x", "second"), ("new", "x", "p"))
        results: list[EndOfClaim] = [Delivered(), Failed(error="busy"), Rejected(error="no")]
        results += [NotSent(), Delivered()]
        outbox.end(ended, results)
        states = {row["event_id"]: row for row in refresh_by_dbt()}
        assert states[killed]["kill_command_id"] is not None

        outbox.replay(state="DEAD", everything=True, **who)
        outbox.replay(state="PUBLISHED", event_ids=["e-000"], **who)
        outbox.apply_commands_if_alone()
        assert outbox.claim(1) is not None
        assert {0, 1} == {row["lifecycle"] for row in refresh_by_dbt()}


@pytest.mark.rest
def test_a_version_tells_its_plan(store: Store, tmp_path: Path) -> None:
    """What checks a version of the projection learns which plan it stands at, also if a relay has
    refreshed it since.
    """
    outbox = store.outbox(tmp_path)
    marks = []
    for number in range(2):
        outbox.append(events(f"plan-{number}", 1)).raise_if_rejected()
        outbox.refresh()
        seen = outbox.projection.known_watermark()
        assert seen is not None
        marks.append(seen)
    told = [
        compile_sql(
            f"{{{{ delta_outbox.applied_plan(ref('outbox_state'), at={mark.version}) }}}}",
            home=store.home,
            schema=store.tables.schema,
        )
        for mark in marks
    ]
    assert [str(mark.plan.number) for mark in marks] == told


@pytest.mark.rest
def test_nothing_new_writes_nothing(store: Store, tmp_path: Path) -> None:
    """A refresh without news adds neither a plan nor a commit."""
    outbox = store.outbox(tmp_path)
    plan = outbox.refresh()
    version = outbox.projection.watermark()
    assert plan == outbox.refresh()
    assert version == outbox.projection.watermark()


@pytest.mark.rest
@pytest.mark.parametrize("refreshed", [False, True])
def test_a_read_view_needs_no_refresh(store: Store, tmp_path: Path, refreshed: bool) -> None:
    """The open deliveries are the same whether seen beside the projection or folded into it."""
    outbox = store.outbox(tmp_path)
    prefix = f"read_view{refreshed}"
    outbox.append(events(prefix, 3)).raise_if_rejected()
    if refreshed:
        outbox.refresh()
    view = outbox.projection.read_view()
    assert refreshed == (view.tail == 0)
    open_ = {row["event_id"]: row["state"] for row in view.frame.toArrow().to_pylist()}
    mine = {name: state for name, state in open_.items() if name.startswith(prefix)}
    assert {f"{prefix}-{n:03}": "PENDING" for n in range(3)} == mine


@pytest.mark.rest
@pytest.mark.local  # reads the files of the projection
def test_few_open_rows_are_those_of_a_query(
    empty_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The open deliveries are the same, read here or by Spark: with nothing new, with new events,
    claims, endings and kills, and with replays of what has ended, which only Spark reads.
    """
    store = empty_store  # in that of others lies what only Spark reads
    outbox = store.outbox(tmp_path)
    live_a_little(store, outbox)
    read: list[bool] = []

    def noted(*args: Any, **options: Any) -> pa.Table | None:
        rows = few_rows(*args, **options)
        read.append(rows is not None)
        return rows

    monkeypatch.setattr(projection, "few_rows", noted)

    def open_rows(most: int, *, tail: int, with_holding: bool) -> dict[str, dict[str, Any]]:
        with monkeypatch.context() as patched:
            patched.setattr(projection, "FEW_ROWS", most)
            view = outbox.projection.read_view(with_holding=with_holding)
            assert tail == view.tail
            rows = view.frame.toArrow().to_pylist()
        by_id = {row["event_id"]: row for row in rows}
        assert len(rows) == len(by_id)
        return by_id

    def are_same(*ways: bool, tail: int, with_holding: bool = True) -> dict[str, dict[str, Any]]:
        read.clear()
        here, by_spark = (
            open_rows(most, tail=tail, with_holding=with_holding)
            for most in (projection.FEW_ROWS, 0)
        )
        assert here == by_spark
        assert list(ways) == read
        return here

    def states(rows: dict[str, dict[str, Any]]) -> set[str]:
        return {row["state"] for row in rows.values()}

    assert {"PENDING", "CLAIMED", "DEAD"} == states(are_same(True, False, tail=0))
    assert {"PENDING", "CLAIMED"} == states(are_same(True, False, tail=0, with_holding=False))
    store.insert(("few-rows", "x", "p"), ("copied", "x", "fourth"))
    claim = outbox.claim(2)
    assert claim is not None
    outbox.end(claim, [Delivered(), Failed(error="busy")])
    assert {"PENDING", "CLAIMED"} == states(are_same(True, False, tail=3, with_holding=False))
    dead = [name for name, row in are_same(True, False, tail=3).items() if row["state"] == "DEAD"]
    assert dead
    outbox.kill(["few-rows", *dead], actor="me", reason="a test", dry_run=False)
    killed = are_same(True, False, tail=1)
    assert killed["few-rows"]["kill_command_id"] is not None
    # A kill may touch the dead, which are not among the rows that are asked for.
    assert killed["few-rows"] == are_same(tail=1, with_holding=False)["few-rows"]
    delivered = claim.deliveries["event_id"][0].as_py()
    for state in ("PUBLISHED", "DEAD"):
        outbox.replay(
            state=state, event_ids=[delivered, *dead], actor="me", reason="a test", dry_run=False
        )
    outbox.refresh()
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "refresh", lambda **_: None)
        outbox.apply_commands()
    replayed = are_same(tail=1)
    assert {"PENDING"} == {replayed[name]["state"] for name in (delivered, *dead)}
    outbox.refresh()
    assert replayed == are_same(True, False, tail=0)


@pytest.mark.local  # asks the files of the event log
def test_few_new_events_are_held_against_earlier_ones(store: Store, tmp_path: Path) -> None:
    """Of the rows of an id the first one is open, be it one of before, of the same commit, or of
    another one. Where no file can have a new id, and none is new twice, nothing is held against
    anything.
    """
    outbox = store.outbox(tmp_path)

    def inserted(*ids: str) -> int:
        store.insert(*((one, "x", f"payload {place}") for place, one in enumerate(ids)))
        return outbox.projection.latest_version(store.tables.events)

    def open_() -> list[tuple[str, int, bool]]:
        rows = outbox.projection.read_view().frame.toArrow().to_pylist()
        mine = [row for row in rows if row["event_id"].startswith("~held-")]
        return sorted((row["event_id"], row["arrival"], row["ambiguous"]) for row in mine)

    def copies() -> str:
        seen = outbox.projection.known_watermark()
        assert seen is not None
        tail = tails.Tails(store.spark, store.tables, store.statements)
        tail.between(seen.versions, outbox.projection.latest_versions())
        return tail.fold_inputs()["new_events"]

    first = inserted("~held-1")
    outbox.refresh()
    second = inserted("~held-2", "~held-3")
    assert copies() == "sole_copies"
    assert [("~held-1", first, False), *((f"~held-{n}", second, False) for n in (2, 3))] == open_()
    inserted("~held-3")
    assert copies() == "first_copies"
    assert [("~held-1", first, False), *((f"~held-{n}", second, False) for n in (2, 3))] == open_()
    outbox.refresh()
    inserted("~held-1")
    assert copies() == "first_copies"
    assert [("~held-1", first, False), *((f"~held-{n}", second, False) for n in (2, 3))] == open_()
    third = inserted("~held-4", "~held-4")
    assert copies() == "first_copies"
    assert ("~held-4", third, True) == open_().pop()
    assert ("~held-1", first, False) == open_()[0]
    assert 4 == len(open_())


def test_a_read_view_begins_where_others_have_refreshed(store: Store, tmp_path: Path) -> None:
    """Who does not refresh, as a relay that stands by, folds what came since the last refresh of
    anybody, not since the last one that it knows of.
    """
    knows, other = store.outbox(tmp_path), store.outbox(tmp_path)
    other.refresh()
    assert 0 == knows.projection.read_view().tail
    for number in range(SHORT_TAIL + 1):
        other.append(events(f"others-{number}-", 1)).raise_if_rejected()
    assert SHORT_TAIL + 1 == knows.projection.read_view().tail  # nobody has refreshed
    other.refresh()
    other.append(events("others-last-", 1)).raise_if_rejected()
    view = knows.projection.read_view()
    assert 1 == view.tail
    shown = {row["event_id"] for row in view.frame.select("event_id").toArrow().to_pylist()}
    assert SHORT_TAIL + 2 == sum(name.startswith("others-") for name in shown)


@pytest.mark.parametrize("lifecycle", [0, 1])
def test_what_stands_is_shown_whatever_names_it(
    store: Store, tmp_path: Path, lifecycle: int
) -> None:
    """Deliveries as they stand are those of a refresh, also where a kill that is void, of one that
    has ended or of another lifecycle, has come since.
    """
    outbox = store.outbox(tmp_path)
    name = f"standing{lifecycle}"
    outbox.append(events(name, 1)).raise_if_rejected()
    while claim := outbox.claim(100):
        outbox.end(claim, [Delivered()] * len(claim))
    outbox.append(events(name, 3)).raise_if_rejected()  # the first one is there already
    outbox.refresh()
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        "lifecycle, arguments, actor, reason, requested_at) "
        f"select concat('kill-', event_id), 'kill', event_id, arrival, '', {lifecycle}, '{{}}', "
        f"'ann', 'to try it', current_timestamp() from {store.tables.state} "
        f"where event_id like '{name}-%'"
    )
    mine = f"event_id like '{name}-%'"
    columns = ("event_id", "state", "lifecycle", "kill_command_id")
    beside = outbox.projection.standing(
        lambda frame: frame.where(mine).select(*columns), planned_by="tests"
    )
    seen = sorted(map(repr, beside.to_pylist()))
    assert 3 == len(seen)
    open_ = outbox.read_view().where(mine).toArrow().num_rows
    outbox.refresh()
    after = store.spark.sql(f"select {', '.join(columns)} from {store.tables.state} where {mine}")
    assert sorted(map(repr, after.toArrow().to_pylist())) == seen
    assert 2 == open_
    outbox.close()
