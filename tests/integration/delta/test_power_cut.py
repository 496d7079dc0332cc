"""What was acknowledged is there after a power cut, and what was torn is named and healed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.delta.power import Disk, remembered
from tests.integration.outboxes import Store, check_derived, empty_logs, events, open_store

from delta_outbox.api import Outbox
from delta_outbox.consumer.inbox import Inbox
from delta_outbox.core.errors import CommitsLost, DbtFailed, LogRewound, OutboxError, TornCommit
from delta_outbox.delta import durability
from delta_outbox.delta.files.log_store import LogStore
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.operations.lanes import LaneRequest, change_lanes
from delta_outbox.operations.maintenance.maintain import Maintenance
from delta_outbox.operations.pauses import append_pausing, pausing_request
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.torn_commits import check_commits
from delta_outbox.store.opening import create_outbox, load_statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.local  # what a server elsewhere commits is its own to sync

WHO: dict[str, Any] = {"actor": "ann", "reason": "because"}


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox in a schema of its own."""
    with open_store(spark, home, "t_power_cut") as opened:
        yield opened


@pytest.fixture
def disk(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Return a disk that has what is there, and of what comes only what a new process syncs."""
    monkeypatch.setattr(durability, "_of_sparks", type(durability._of_sparks)())
    with remembered(home.warehouse) as disk:
        yield disk


def after_power_cut(disk: Disk, to: Path, *, keeps_names: bool) -> Home:
    """Return a home with the warehouse as it is found after a power cut."""
    home = Home(root=to).create()
    home.warehouse.rmdir()
    disk.after_power_cut(home.warehouse, keeps_names=keeps_names)
    return home


def folder_of(store: Store) -> Path:
    """Return the folder of the tables of an outbox."""
    return store.home.warehouse / f"{store.tables.schema}.db"


def found(store: Store, home: Home, name: str) -> list[dict[str, Any]]:
    """Return what a table of a home holds, read by nothing but its files."""
    path = home.warehouse / f"{store.tables.schema}.db" / name
    rows: list[dict[str, Any]] = (
        store.spark.read.format("delta").load(str(path)).toArrow().to_pylist()
    )
    return rows


def test_what_was_acknowledged_survives(
    store: Store, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut each event that was appended through us or delivered is there with what
    became of it, and each command; nothing was claimed that was not on the disk. A plain insert
    that nobody has acted on may be torn: that is named, and after the remedy the rest is there.
    """
    before: list[Path] = []
    put = LogStore.put

    def watched(log: LogStore, version: int, actions: Any, *, tag: str) -> bool:
        before.extend(disk.unsynced(folder_of(store)))
        return put(log, version, actions, tag=tag)

    monkeypatch.setattr(LogStore, "put", watched)
    outbox = store.outbox(tmp_path / "delivered")
    outbox.append(events("api", 3)).raise_if_rejected()
    store.insert(("plain", "order.created", "x"))
    assert 4 == Relay(outbox).run(Mode.DRAIN).published
    replay = outbox.replay(state="PUBLISHED", event_ids=["plain"], dry_run=False, **WHO)
    assert [] == before
    store.insert(("unacknowledged", "order.created", "x"))
    gone = after_power_cut(disk, tmp_path / "gone", keeps_names=False)
    torn = after_power_cut(disk, tmp_path / "torn", keeps_names=True)
    check_commits(gone)
    with pytest.raises(TornCommit, match="outbox_events") as caught:
        check_commits(torn)
    [_, command, *_] = caught.value.remedy.split("`")
    subprocess.run(["bash", "-ec", command], check=True)
    check_commits(torn)
    ids = {"plain", "api-000", "api-001", "api-002"}
    for home in (gone, torn):
        assert ids == {row["event_id"] for row in found(store, home, "outbox_events")}
    ended = {
        row["event_id"]: row["to_state"]
        for row in found(store, gone, "outbox_transitions")
        if row["to_state"] != "CLAIMED"
    }
    assert dict.fromkeys(ids, "PUBLISHED") == ended
    commands = {row["command_id"] for row in found(store, gone, "outbox_commands")}
    assert {replay.command_id} == commands


def _append(outbox: Outbox) -> None:
    outbox.append(events("again", 2)).raise_if_rejected()


def _claim_and_end(outbox: Outbox) -> None:
    claim = outbox.claim(10)
    assert claim is not None
    outbox.end(claim, [Delivered()] * len(claim))


def _relay(outbox: Outbox) -> None:
    Relay(outbox).run(Mode.DRAIN)


def _replay(outbox: Outbox) -> None:
    outbox.replay(state="PUBLISHED", event_ids=["again-000"], dry_run=False, **WHO)


def _sequence(outbox: Outbox) -> None:
    assert outbox.apply_commands_if_alone() > 0


def _kill(outbox: Outbox) -> None:
    outbox.kill(["again-000"], dry_run=False, **WHO)


def _pause(outbox: Outbox) -> None:
    append_pausing(outbox, pausing_request("pause", destination="default", **WHO))


def _lanes(outbox: Outbox) -> None:
    assert change_lanes(outbox, LaneRequest(lanes=2, **WHO), max_wait=60.0)


def _refresh(outbox: Outbox) -> None:
    outbox.refresh()


def _rebuild(outbox: Outbox) -> None:
    outbox.refresh(rebuild=True)


def _maintain(outbox: Outbox) -> None:
    maintenance = Maintenance(outbox)
    try:
        maintenance.run()
    finally:
        maintenance.close()


DEEDS: list[Callable[[Outbox], None]] = [
    *(_append, _claim_and_end, _replay, _sequence, _relay, _replay, _sequence, _kill),
    *(_pause, _lanes, _refresh, _rebuild, _maintain),
]


@pytest.mark.rest
def test_nothing_is_acknowledged_that_is_not_on_the_disk(
    spark: SparkSession, home: Home, disk: Disk, tmp_path: Path
) -> None:
    """When a call returns, whatever it did, all that is committed to the outbox is on the disk; a
    plain insert, which nobody has acted on, is not, and is before the next call decides.
    """
    with open_store(spark, home, "t_power_deeds") as store:
        outbox, folder = store.outbox(tmp_path / "delivered"), folder_of(store)
        for number, deed in enumerate(DEEDS):
            store.insert((f"plain-{number}", "order.created", "x"))
            assert disk.unsynced(folder), deed
            deed(outbox)
            assert [] == disk.unsynced(folder), deed
        outbox.close()


@pytest.mark.rest
def test_an_inbox_never_knows_more_than_was_done(
    spark: SparkSession, outbox_schema: str, home: Home, disk: Disk
) -> None:
    """Before an inbox remembers deliveries, what was done with them is on the disk; and then that
    it remembers them is.
    """
    spark.sql(f"create schema {outbox_schema}")
    folder = home.warehouse / f"{outbox_schema}.db"
    inbox = Inbox(table=f"{outbox_schema}.inbox")
    inbox.create(spark)
    rows = [("e", 0, datetime(2026, 3, 10, 12, tzinfo=UTC))]
    new = spark.createDataFrame(rows, "event_id string, lifecycle int, sent_at timestamp")
    record, seen = Inbox.record, []

    def watched(self: Inbox, given: DataFrame) -> None:
        seen.append(disk.unsynced(folder / "effect"))
        record(self, given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Inbox, "record", watched)
        done = inbox.process(
            new, lambda rows: rows.write.format("delta").saveAsTable(f"{outbox_schema}.effect")
        )
    assert (1, [[]]) == (done, seen)
    assert [] == disk.unsynced(folder)


def commits_of(store: Store) -> dict[str, set[Path]]:
    """Return the commits of each table of an outbox."""
    logs = folder_of(store).glob("*/_delta_log")
    return {log.parent.name: set(log.glob("*.json")) for log in logs}


def take(store: Store, names: Sequence[str], *, since: dict[str, set[Path]]) -> None:
    """Take the commits of tables that came since, with all that Delta has left beside them."""
    for name in names:
        new = commits_of(store)[name] - since[name]
        assert new
        for commit in new:
            for file in commit.parent.glob(f"*{commit.stem}.*"):
                file.unlink()
    jvm: Any = store.spark.sparkContext._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def build_state(store: Store, *more: str) -> None:
    """Let dbt refresh the projection."""
    args = ["run", "--select", "outbox_state", *more]
    check_result(run_dbt(args, home=store.home, schema=store.tables.schema))


EVENTS, PLANS, STATE = "outbox_events", "outbox_progress", "outbox_state"


@pytest.mark.parametrize(
    ("way", "lost", "error"),
    [
        ("store", (PLANS,), LogRewound),
        *(
            pytest.param(way, lost, error, marks=pytest.mark.rest)
            for way, lost, error in (
                ("dbt", (PLANS,), LogRewound),
                ("dbt", (EVENTS,), CommitsLost),
                ("store", (EVENTS, STATE), None),
                ("store", (EVENTS, PLANS), LogRewound),
                ("dbt", (PLANS, STATE), None),
                ("store", (STATE,), None),
                ("store", (EVENTS, PLANS, STATE), None),
            )
        ),
    ],
)
def test_the_remedy_helps_whatever_a_power_cut_takes(
    store: Store, tmp_path: Path, way: str, lost: Sequence[str], error: type[OutboxError] | None
) -> None:
    """Whichever of the commits a power cut takes that came with a refresh of dbt, nothing of what
    is left is taken for something else: either all goes on, or every way says what is lost, and
    after the rebuild of the remedy what is there and what comes is in the projection.
    """
    outbox, prefix = store.outbox(tmp_path), f"{way}-{'-'.join(lost)}"
    store.insert((f"{prefix}-kept", "x", "p"))
    outbox.refresh()
    before = commits_of(store)
    store.insert((f"{prefix}-last", "x", "p"))
    if way == "dbt":
        build_state(store)
    else:
        outbox.refresh()  # writes the same, and syncs it, which here means nothing
    take(store, lost, since=before)
    meanwhile = set()
    if EVENTS not in lost:  # what a plan of the lost number would be about as well
        store.insert((f"{prefix}-meanwhile", "x", "p"))
        meanwhile = {"last", "meanwhile"}
    late = store.outbox(tmp_path)
    if error is not None:
        with pytest.raises(error) as said:
            late.refresh()
        assert "`outbox refresh --rebuild`" in said.value.remedy
        with pytest.raises(error):
            late.retrieve(1)
        if way == "dbt":
            with pytest.raises(DbtFailed, match=f"{error.code}.*outbox refresh --rebuild"):
                build_state(store)
        if lost == (EVENTS,):
            build_state(store, "--full-refresh")
        else:
            late.refresh(rebuild=True)
    store.insert((f"{prefix}-after", "x", "p"))
    late.refresh()
    expected = {"kept", "after"} | meanwhile
    assert {f"{prefix}-{one}": "PENDING" for one in expected} == store.states(prefix)
    check_derived(store)


@pytest.mark.rest
def test_an_init_that_lost_its_power_is_repeated(
    spark: SparkSession, home: Home, tmp_path: Path
) -> None:
    """Where the power was lost while tables were made, so that of some not even the first commit is
    there, the next `outbox init` makes them, and leaves the others as they are.
    """
    with empty_logs(spark, home, "t_power_init") as tables:
        store = Store(
            spark=spark, home=home, tables=tables, statements=load_statements(home, tables)
        )
        store.insert(("kept", "order.created", "x"))
        unmade = ("outbox_relays", "outbox_purged")
        take(store, unmade, since={name: set() for name in unmade})
        create_outbox(spark, home, tables)
        outbox = store.outbox(tmp_path / "delivered")
        assert 1 == Relay(outbox).run(Mode.DRAIN).published
        outbox.close()


@pytest.mark.rest
def test_a_rebuild_forgets_what_a_power_cut_has_taken(
    spark: SparkSession, home: Home, tmp_path: Path
) -> None:
    """What the projection holds of a commit that was moved away, as where dbt had derived it before
    the power was lost, goes with the rebuild of the remedy, and what took its number comes.
    """
    with open_store(spark, home, "t_power_rebuild") as store:
        outbox = store.outbox(tmp_path / "delivered")
        store.insert(("kept", "order.created", "x"))
        store.insert(("lost", "order.created", "x"))
        outbox.refresh()
        log = folder_of(store) / "outbox_events" / "_delta_log"
        newest = max(log.glob("*.json"))
        for file in [*log.glob(f"{newest.stem}.*"), *log.glob(f".{newest.stem}.*")]:
            file.unlink()
        jvm: Any = spark.sparkContext._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        store.insert(("came after", "order.created", "x"))
        outbox.refresh(rebuild=True)
        assert {"kept": "PENDING", "came after": "PENDING"} == store.states()
        outbox.close()
