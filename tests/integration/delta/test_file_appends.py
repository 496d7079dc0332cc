"""Appends without a Spark job: what they commit is what Spark would have committed."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JNetworkError
from tests.integration.outboxes import (
    appended_by_spark,
    commit_actions,
    empty_logs,
    left_to_spark,
    new_transition_log,
)

from delta_outbox.core.errors import DiskFull, SequenceTaken
from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT
from delta_outbox.core.tables import BEATS, COMMANDS, LOGS, TRANSITIONS, Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.files import log_state
from delta_outbox.delta.files.file_appends import FileAppends
from delta_outbox.delta.files.log_state import TableForm
from delta_outbox.delta.files.log_store import LogStore
from delta_outbox.delta.files.row_checks import condition
from delta_outbox.delta.log_reader import LogReader, changes
from delta_outbox.delta.log_writer import append_rows
from delta_outbox.producer.candidates import COLUMNS
from delta_outbox.runtime.home import Home
from delta_outbox.store.transition_log import TransitionLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.local  # through a server Spark appends

NOW = datetime(2026, 1, 2, 23, 59, 59, 999_999, tzinfo=UTC)
EVENTS = pa.schema([*COLUMNS.items(), ("appended_at", COLUMNS["created_at"])])
Values = Callable[[random.Random], dict[str, object]]
CHECKPOINT_INTERVAL = 50


@pytest.fixture(scope="module")
def empty(spark: SparkSession, home: Home) -> Iterator[Tables]:
    """Return logs to which nobody writes."""
    with empty_logs(spark, home, "t_file_appends") as tables:
        yield tables


@pytest.fixture
def tables(spark: SparkSession, empty: Tables, outbox_schema: str) -> Tables:
    """Return a new log, a copy of the empty one with its rules."""
    return new_transition_log(spark, empty, outbox_schema)


@pytest.fixture
def tracked(spark: SparkSession, tables: Tables) -> Tables:
    """Return a new log whose rows are tracked, as those of outboxes of format 1 are."""
    spark.sql(
        f"alter table {tables.transitions} set tblproperties ('delta.enableRowTracking' = 'true')"
    )
    return tables


def _claims(count: int, *, name: str = "e", at: datetime = NOW) -> pa.Table:
    """Return rows that claim events, some columns given and others left out."""
    rows = [
        {
            "event_id": f"{name}-{number}",
            "arrival": number,
            "destination": "d",
            "lifecycle": 0,
            "attempt": 1,
            "from_state": "PENDING",
            "to_state": "CLAIMED",
            "reason": "claimed",
            "claim_id": "c",
            "claim_size": count,
            "lease_expires_at": at + timedelta(seconds=30),
            "publish_attempts": 0,
            "crashes": 0,
            "suspect": 0,
            "occurred_at": at,
            "error": None if number % 2 else 'Grüße, "quoted" \\ and\nmore 😀',
        }
        for number in range(count)
    ]
    names = rows[0].keys()
    return pa.table(
        {n: pa.array([row[n] for row in rows], TRANSITIONS.field(n).type) for n in names}
    )


def _log(spark: SparkSession, tables: Tables, relay: str = "r") -> TransitionLog:
    log = TransitionLog(spark, tables, relay_id=relay)
    log.catch_up()
    return log


def _parquet(spark: SparkSession, table: str) -> set[Path]:
    folder = CommitHistory(spark).folder(table)
    assert folder is not None
    return set(folder.parent.rglob("*.parquet")) - set(folder.rglob("*"))


@pytest.mark.parametrize(
    "are_tracked", [False, pytest.param(True, id="tracked", marks=pytest.mark.rest)]
)
def test_the_commit_is_like_one_of_sparks(
    spark: SparkSession,
    tables: Tables,
    request: pytest.FixtureRequest,
    are_tracked: bool,
) -> None:
    """The same rows, appended by Spark and by files, leave the same words in Delta's log."""
    if are_tracked:
        request.getfixturevalue("tracked")
    log = _log(spark, tables)
    with left_to_spark(spark, tables.transitions):
        log.append(_claims(3))
        theirs = commit_actions(spark, tables.transitions, log.version)
    log.append(_claims(3))
    ours = commit_actions(spark, tables.transitions, log.version)
    assert theirs.keys() == ours.keys()
    of_rows = {"domainMetadata"} if are_tracked else set()
    assert {"add", "commitInfo", "txn"} | of_rows == ours.keys()
    changing = {"timestamp", "txnId", "engineInfo", "readVersion", "userMetadata"}
    info, other = ours["commitInfo"][0], theirs["commitInfo"][0]
    assert other.keys() - {"tags"} == info.keys()
    for name in info.keys() - changing - {"operationMetrics"}:
        assert other[name] == info[name], name
    assert other["operationMetrics"].keys() == info["operationMetrics"].keys()
    assert (1, 2) == (theirs["txn"][0]["version"], ours["txn"][0]["version"])
    add, their_add = ours["add"][0], theirs["add"][0]
    assert their_add.keys() - {"tags", "clusteringProvider"} == add.keys()
    assert their_add["partitionValues"] == add["partitionValues"]
    folder = CommitHistory(spark).folder(tables.transitions)
    assert folder is not None
    schemas = [pq.read_schema(folder.parent / one["path"]) for one in (add, their_add)]
    assert schemas[0].names == schemas[1].names
    statistics, their_statistics = json.loads(add["stats"]), json.loads(their_add["stats"])
    for of in (statistics, their_statistics):
        for bounds in ("minValues", "maxValues"):
            of[bounds].pop("sequence")
    assert (
        their_statistics.items()
        >= {name: value for name, value in statistics.items() if name != "maxValues"}.items()
    )
    # Delta cuts the microseconds off, and may be a millisecond early; ours is not.
    assert their_statistics["maxValues"]["occurred_at"] <= statistics["maxValues"]["occurred_at"]
    if not are_tracked:
        assert "baseRowId" not in add
        return
    assert (0, 3) == (their_add["baseRowId"], add["baseRowId"])
    assert log.version == add["defaultRowCommitVersion"]
    marks = [json.loads(one["domainMetadata"][0]["configuration"]) for one in (theirs, ours)]
    assert [2, 5] == [mark.pop("rowIdHighWaterMark") for mark in marks]
    assert marks[0] == marks[1]


@pytest.mark.rest
def test_spark_reads_what_was_given(spark: SparkSession, tables: Tables) -> None:
    """Values of all kinds come back, in a file for each day, whoever wrote them."""
    log = _log(spark, tables)
    log.append(pa.concat_tables([_claims(2), _claims(2, at=NOW + timedelta(microseconds=1))]))
    log.append(_claims(1).slice(1))
    log.append(_claims(1, name="a", at=datetime(1, 1, 1, tzinfo=UTC)))
    assert 0 == appended_by_spark(spark, tables.transitions)
    rows = spark.sql(
        f"select * from {tables.transitions} where sequence = 1 order by occurred_at, event_id"
    ).toArrow()
    first = rows.slice(0, 2).select(_claims(2).column_names)
    assert first.to_pylist() == _claims(2).to_pylist()
    days = [str(day) for day in rows["occurred_date"].to_pylist()]
    assert ["2026-01-02", "2026-01-02", "2026-01-03", "2026-01-03"] == days
    assert [None] * 4 == rows["receipt"].to_pylist()
    old = spark.sql(f"select * from {tables.transitions} where occurred_date < date'1000-01-01'")
    assert 1 == old.count()
    exact = f"occurred_at = timestamp'{NOW.isoformat()}'"
    assert 2 == spark.sql(f"select 1 from {tables.transitions} where {exact}").count()


def test_events_are_as_spark_would_have_appended_them(
    spark: SparkSession, empty: Tables, outbox_schema: str
) -> None:
    """Events of all kinds come back alike from files that Spark has written and from ours, which
    have the same columns, the same days, and the same least and greatest values.
    """
    spark.sql(f"create schema {outbox_schema}")
    events = Tables(schema=outbox_schema).events
    spark.sql(f"create table {events} like {empty.events}")
    rows = _some_events()
    with left_to_spark(spark, events):
        append_rows(spark, events, rows, tag="theirs")
    append_rows(spark, events, rows, tag="ours")
    assert 1 == appended_by_spark(spark, events)
    versions = {commit.tag: commit.version for commit in CommitHistory(spark).back(events, 9)}
    columns = "* except (_change_type, _commit_version, _commit_timestamp)"
    found = []
    for tag in ("theirs", "ours"):
        source = changes(events, after=versions[tag] - 1, to=versions[tag])
        read = spark.sql(f"select {columns} from {source} order by created_at, ordinal").toArrow()
        added = commit_actions(spark, events, versions[tag])["add"]
        found.append((read.to_pylist(), *_told(spark, events, added)))
    assert found[0] == found[1]
    assert [len(row["payload"]) for row in found[0][0]] == [
        row["payload_bytes"] for row in found[0][0]
    ]
    ids = "count(distinct _metadata.row_id) as ids, count(*) as rows"
    assert [(8, 8)] == [tuple(row) for row in spark.sql(f"select {ids} from {events}").collect()]


def _some_events() -> pa.Table:
    given: list[dict[str, object]] = [
        {"payload": b"", "headers": [], "ordering_key": "k"},
        {"payload": b"\x00\xff", "headers": [("a", "Grüße 😀"), ("b", None)]},
        {"payload": b"x" * 5000, "metadata": [("traceparent", "00-1")], "partition_key": ""},
        {"created_at": NOW + timedelta(days=1), "available_at": NOW, "payload": b"later"},
    ]
    rows = [
        {"event_id": f"e-{n}", "event_type": "t", "created_at": NOW, "appended_at": NOW}
        | {"ordinal": n}
        | one
        for n, one in enumerate(given)
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)


def _told(
    spark: SparkSession, table: str, added: list[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    """Return of each file of a commit what Delta says of it, and its columns, in their order."""
    folder = CommitHistory(spark).folder(table)
    assert folder is not None
    told, columns = [], []
    for one in sorted(added, key=lambda file: str(file["partitionValues"])):
        stats = json.loads(one["stats"])
        for name in ("created_at", "appended_at"):  # Delta cuts the microseconds off; we round up
            del stats["maxValues"][name]
        told.append((one["partitionValues"], stats))
        schema = pq.ParquetFile(folder.parent / one["path"]).schema
        columns.append([schema.column(place).path for place in range(len(schema))])
    return told, columns


@pytest.mark.rest
def test_delta_goes_on_where_files_were_appended(spark: SparkSession, tracked: Tables) -> None:
    """Rows keep ids of their own, whoever appends and rewrites; and every so often Spark appends,
    so that there are checkpoints, after which a new process still needs no Spark job.
    """
    log = _log(spark, tracked)
    for number in range(1, CHECKPOINT_INTERVAL + 6):
        if number == 3:
            spark.sql(f"optimize {tracked.transitions}")
        if number == 5:
            log_state._known.clear()
        log.append(_claims(2, name=f"n{number}"))
    assert 1 == appended_by_spark(spark, tracked.transitions)
    folder = CommitHistory(spark).folder(tracked.transitions)
    assert folder is not None
    assert list(folder.glob(f"{CHECKPOINT_INTERVAL:020}.checkpoint*.parquet"))
    log_state._known.clear()
    log.append(_claims(2, name="last"))
    assert 1 == appended_by_spark(spark, tracked.transitions)
    spark.sql(f"optimize {tracked.transitions}")
    log.append(_claims(2, name="after"))
    found = spark.sql(
        "select count(*) as rows, count(distinct _metadata.row_id) as ids, "
        f"count(distinct sequence) as sequences from {tracked.transitions}"
    ).collect()[0]
    appends = CHECKPOINT_INTERVAL + 7
    assert (2 * appends, 2 * appends, appends) == (found["rows"], found["ids"], found["sequences"])


@pytest.mark.rest
def test_a_number_is_not_taken_by_the_commit_of_a_checkpoint(
    spark: SparkSession, tables: Tables
) -> None:
    """Spark, which takes a second and goes on when a relay dies, makes the checkpoint with a commit
    of nothing; what others race for is committed after it, at once. Where each commit makes one,
    the rows are in it.
    """
    table = tables.transitions
    properties = f"alter table {table} set tblproperties ('delta.checkpointInterval' = '{{}}')"
    log = _log(spark, tables)
    log.append(_claims(1))
    spark.sql(properties.format(4))
    found = {}
    for number in range(4):
        log.append(_claims(1, name=f"n{number}"))
        found[log.version] = {"add", "txn"} <= commit_actions(spark, table, log.version).keys()
    folder = CommitHistory(spark).folder(table)
    assert folder is not None
    assert {3: True, 5: True, 6: True, 7: True} == found
    assert {"commitInfo", "txn"} == commit_actions(spark, table, 4).keys()
    assert (folder / f"{4:020}.checkpoint.parquet").exists()
    assert 1 == appended_by_spark(spark, table)
    spark.sql(properties.format(1))
    log.append(_claims(1, name="last"))
    assert 9 == log.version
    assert 2 == appended_by_spark(spark, table)
    assert 6 == spark.table(table).count()


@pytest.mark.rest
def test_of_many_writers_each_number_has_one(
    spark: SparkSession, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers by files and writers through Spark race for the same numbers: no number is lost, none
    is there twice, and whoever was told that it won has.
    """
    append = FileAppends.append

    def some(self: FileAppends, table: str, rows: pa.Table, *given: Any, **named: Any) -> bool:
        through_files = not str(rows["relay_id"][0]).startswith("spark")
        return through_files and append(self, table, rows, *given, **named)

    monkeypatch.setattr(FileAppends, "append", some)
    numbers = 4

    def race(name: str) -> list[int]:
        log = _log(spark, tables, name)
        won = []
        while log.sequence < numbers:
            try:
                log.append(_claims(1, name=name))
            except SequenceTaken:
                log.catch_up()
            else:
                won.append(log.sequence)
        return won

    names = ["files-1", "files-2", "files-3", "spark-1", "spark-2"]
    with ThreadPoolExecutor(len(names)) as threads:
        won = dict(zip(names, threads.map(race, names), strict=True))
    rows = spark.sql(f"select sequence, relay_id from {tables.transitions}").collect()
    told = {(number, name) for name, theirs in won.items() for number in theirs}
    assert {(row["sequence"], row["relay_id"]) for row in rows} == told
    assert len(rows) == len(told) >= numbers
    assert set(range(1, numbers + 1)) <= {number for number, _ in told}


def test_a_commit_waits_for_one_of_deltas_own(spark: SparkSession, tables: Tables) -> None:
    """Delta's commit asks whether its version is free, and then takes it, under a lock of the
    table's log. An append holds the same lock, or one of the two could take the other's place.
    """
    log = _log(spark, tables)
    log.append(_claims(1))
    folder = CommitHistory(spark).folder(tables.transitions)
    assert folder is not None
    session: Any = spark._jsparkSession
    jvm: Any = spark._jvm
    deltas = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, f"file:{folder.parent}")
    lock = deltas.snapshotLock()
    with ThreadPoolExecutor(1) as threads:
        lock.lock()
        try:
            appended = threads.submit(log.append, _claims(2))
            while not (appended.done() or lock.hasQueuedThreads()):
                time.sleep(0.01)
            assert not appended.done()
            assert not (folder / f"{(log.version or 0) + 1:020}.json").exists()
        finally:
            lock.unlock()
        appended.result()
    assert 2 == log.sequence
    assert 0 == appended_by_spark(spark, tables.transitions)


def test_a_lost_answer_loses_no_file(
    spark: SparkSession, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the JVM commits and its answer is lost, the append counts, and its rows are there."""
    log = _log(spark, tables)
    log.append(_claims(1))
    put = LogStore.put

    def lost(self: Any, *given: Any, **named: Any) -> bool:
        put(self, *given, **named)
        raise Py4JNetworkError("gone")

    monkeypatch.setattr(LogStore, "put", lost)
    log.append(_claims(2))
    assert 2 == log.sequence
    added = commit_actions(spark, tables.transitions, log.version)["add"][0]["path"]
    assert any(str(file).endswith(added) for file in _parquet(spark, tables.transitions))
    assert 3 == spark.table(tables.transitions).count()


@pytest.mark.rest
def test_what_is_not_committed_leaves_no_file(
    spark: SparkSession, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the log store refuses, the error is the caller's, and the data file is gone; so are all
    of an append if the disk takes only some of them.
    """
    log = _log(spark, tables)
    log.append(_claims(1))
    before = _parquet(spark, tables.transitions)
    put = LogStore.put

    def nowhere(self: Any, version: int, *given: Any, **named: Any) -> bool:
        self._folder = Path("/nowhere") / self._folder.name
        return put(self, version, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(LogStore, "put", nowhere)
        with pytest.raises(Exception, match="nowhere"):
            log.append(_claims(2))
    assert before == _parquet(spark, tables.transitions)
    tomorrow = _claims(1, name="t", at=NOW + timedelta(days=1))
    write = pq.write_table
    taken: list[object] = []

    def full(*given: Any, **named: Any) -> None:
        if taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(*given, **named)
        taken.append(given)

    with monkeypatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        with pytest.raises(DiskFull):
            log.append(pa.concat_tables([_claims(1), tomorrow]))
    assert [1] == [len(taken)]
    assert before == _parquet(spark, tables.transitions)
    log.append(_claims(2))
    assert 2 == log.sequence


@pytest.mark.rest
def test_another_table_in_its_place_is_noticed(
    spark: SparkSession, tables: Tables, empty: Tables
) -> None:
    """What is known of a table is not believed of the one that takes its name."""
    log = _log(spark, tables)
    for _ in range(3):
        log.append(_claims(1))
    spark.sql(f"drop table {tables.transitions}")
    spark.sql(f"create table {tables.transitions} like {empty.transitions}")
    new = _log(spark, tables)
    new.append(_claims(1))
    assert (1, 1) == (new.sequence, new.version)
    assert 1 == spark.table(tables.transitions).count()
    assert 0 == appended_by_spark(spark, tables.transitions)


ALTERED: Mapping[str, str] = {
    "a constraint": "add constraint rather_short check (length(event_id) < 9)",
    "a column": "add column remark string",
    "a property": "set tblproperties ('delta.setTransactionRetentionDuration' = 'interval 9 days')",
    "a property of the user's own": "set tblproperties ('team' = 'ours')",
    "another value": "set tblproperties ('delta.autoOptimize.optimizeWrite' = 'true')",
    "a partition that may be null": "alter column lane drop not null",
    "a feature of writers": "set tblproperties ('delta.enableInCommitTimestamps' = 'true')",
    "deletion vectors": "set tblproperties ('delta.enableDeletionVectors' = 'true')",
    "column mapping": "set tblproperties ('delta.columnMapping.mode' = 'name')",
}
READ_BY_SPARK = ("deletion vectors", "column mapping")


def test_an_altered_table_is_left_to_spark(spark: SparkSession, tables: Tables) -> None:
    """Whatever a user adds to a table, of which the writer of files does not know how to do it
    justice, makes Spark append; whoever reads gets the same rows from files and from the feed.
    """
    _check_altered(spark, tables, "a property")


@pytest.mark.rest
@pytest.mark.parametrize("what", ALTERED)
def test_each_alteration_leaves_a_table_to_spark(
    spark: SparkSession, tables: Tables, what: str
) -> None:
    """The same of each kind of alteration; a constraint is kept, and what a reader has to know more
    than a file tells is left to Spark as well.
    """
    log = _check_altered(spark, tables, what)
    if what == "a constraint":
        with pytest.raises(Exception, match=r"(?i)constraint"):
            log.append(_claims(1, name="much-too-long"))
    elif what == "column mapping":
        spark.sql(f"alter table {tables.transitions} rename column error to trouble")
        spark.sql(f"alter table {tables.transitions} add column error string")
        assert LogReader(spark)._files(tables.transitions, 0, _newest(spark, tables)) is None
        return  # Delta tells no changes across a column that was renamed
    elif what == "deletion vectors":
        spark.sql(f"delete from {tables.transitions} where event_id = 'e-0'")
    _check_read(spark, tables, _newest(spark, tables), what)


def _check_altered(spark: SparkSession, tables: Tables, what: str) -> TransitionLog:
    """Demand that Spark appends to a table that was altered."""
    log = _log(spark, tables)
    log.append(_claims(2))
    assert 0 == appended_by_spark(spark, tables.transitions)
    spark.sql(f"alter table {tables.transitions} {ALTERED[what]}")
    log.append(_claims(3))
    assert 1 == appended_by_spark(spark, tables.transitions), what
    assert 2 == log.sequence
    assert 5 == spark.table(tables.transitions).count()
    _check_read(spark, tables, _newest(spark, tables), what)
    return log


def _newest(spark: SparkSession, tables: Tables) -> int:
    newest = CommitHistory(spark).newest(tables.transitions)
    assert newest is not None
    return newest.version


def _check_read(spark: SparkSession, tables: Tables, to: int, what: str) -> None:
    """Demand that a table is read as the change feed has it, from files where that is right."""
    reader, table = LogReader(spark), tables.transitions
    assert (what in READ_BY_SPARK) == (reader._files(table, 0, to) is None)
    columns = ("event_id", "error", "lane", "sequence", "occurred_at", "_commit_version")
    found = reader.added(table, after=0, to=to, columns=columns)
    assert found is not None
    feed = spark.sql(f"select {', '.join(columns)} from {changes(table, after=0, to=to)}").toArrow()
    rows = (sorted(map(repr, one.to_pylist())) for one in (feed, found.rows))
    assert next(rows) == next(rows)


@pytest.mark.rest
def test_a_table_that_is_altered_meanwhile_is_left_to_spark(
    spark: SparkSession, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constraint that comes after the file was written, and before its commit, holds for it."""
    log = _log(spark, tables)
    log.append(_claims(1))
    before = _parquet(spark, tables.transitions)
    put = LogStore.put

    def late(self: Any, *given: Any, **named: Any) -> bool:
        monkeypatch.setattr(LogStore, "put", put)
        spark.sql(f"alter table {tables.transitions} {ALTERED['a constraint']}")
        return put(self, *given, **named)

    monkeypatch.setattr(LogStore, "put", late)
    with pytest.raises(Exception, match=r"(?i)constraint"):
        log.append(_claims(1, name="much-too-long"))
    assert before == _parquet(spark, tables.transitions)
    assert 1 == spark.table(tables.transitions).count()


def test_files_of_other_partitions_tell_nothing_of_a_lane(
    spark: SparkSession, tables: Tables
) -> None:
    """A log that somebody has made anew with other partitions is not taken for one without rows."""
    table = f"{tables.schema}.made_anew"
    columns = "event_id string, lane int, day string"
    spark.sql(f"create table {table} ({columns}) using delta partitioned by (day)")
    spark.sql(f"insert into {table} values ('a', 0, 'monday')")
    read = partial(LogReader(spark).rows_of_few_commits, table, after=0, to=1, columns=["event_id"])
    assert read(partition={"lane": "0"}) is None
    for day, rows in (("monday", 1), ("friday", 0)):
        found = read(partition={"day": day})
        assert found is not None
        assert rows == found.num_rows
    spark.sql(f"drop table {table}")


def test_the_logs_are_as_the_writer_knows_them(spark: SparkSession, empty: Tables) -> None:
    """Of what Delta has made of our DDL, files are written to all logs but the record of purges,
    and read of all.
    """
    forms = {}
    for name in LOGS:
        folder = CommitHistory(spark).folder(empty[name])
        assert folder is not None
        state = log_state.state_of(folder, 0)
        assert state is not None
        assert state.is_readable
        forms[name] = isinstance(state.form, TableForm)
    assert forms == {name: name != "outbox_purged" for name in forms}


def test_a_missing_value_is_refused(spark: SparkSession, tables: Tables) -> None:
    """What the table demands, it demands of every writer."""
    log = _log(spark, tables)
    log.append(_claims(1))
    rows = _claims(2)
    at = rows.schema.get_field_index("occurred_at")
    missing = pa.array([NOW, None], TRANSITIONS.field("occurred_at").type)
    with pytest.raises(Exception, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        log.append(rows.set_column(at, "occurred_at", missing))
    assert 1 == spark.table(tables.transitions).count()


def _values(random_: random.Random) -> dict[str, object]:
    states = ("PENDING", "CLAIMED", "PUBLISHED", "DEAD")
    reasons = ("claimed", "delivered", "failed", "released", "replayed", "operator", "rejected")
    small = [*range(-1, 4), None]
    return {
        **{
            name: random_.choice(small)
            for name in ("epoch", "lane", "sequence", "arrival", "lifecycle", "attempt")
        },
        **{n: random_.choice(small) for n in ("publish_attempts", "crashes", "suspect")},
        **{n: random_.choice(("a", "", None)) for n in ("event_id", "destination")},
        **{n: random_.choice((*states, None)) for n in ("from_state", "to_state")},
        "reason": random_.choice((*reasons, None)),
        **{n: random_.choice(("x", None)) for n in ("claim_id", "relay_id", "actor", "command_id")},
        **{
            name: random_.choice((0, FIRST_INSTANT, LAST_INSTANT, beyond, None))
            for name in ("occurred_at", "available_at", "lease_expires_at")
            for beyond in (FIRST_INSTANT - 1, LAST_INSTANT + 1)
        },
        "claim_size": random_.choice((0, 1, None)),
    }


def _event_values(random_: random.Random) -> dict[str, object]:
    texts = ["x", "", "ü" * 256, "ü" * 256 + "x", "k" * 1024, "k" * 1025, None]
    return {
        **{n: random_.choice(texts) for n in ("event_id", "event_type")},
        **{n: random_.choice(texts) for n in ("ordering_key", "partition_key")},
        **{
            n: random_.choice((0, FIRST_INSTANT - 1, FIRST_INSTANT, LAST_INSTANT + 1, None))
            for n in ("created_at", "available_at", "appended_at")
        },
    }


def _command_values(random_: random.Random) -> dict[str, object]:
    blank = ["", " ", "   ", "\t", "\u00a0", " x ", "x", None]
    return {
        "kind": random_.choice(["replay", "accept_late", "Replay", "replay ", "", None]),
        **{name: random_.choice(blank) for name in ("actor", "reason")},
        "requested_at": random_.choice((0, FIRST_INSTANT - 1, LAST_INSTANT + 1, None)),
    }


def _beat_values(random_: random.Random) -> dict[str, object]:
    return {
        "kind": random_.choice(["started", "alive", "stopped", "dead", "", None]),
        "at": random_.choice((0, FIRST_INSTANT - 1, LAST_INSTANT + 1, None)),
    }


CHECKS = {
    "outbox_events": 5,
    "outbox_transitions": 9,
    "outbox_commands": 3,
    "outbox_relays": 2,
}
OF_TEXT = "text_is_utf8"  # what Arrow takes for text always is


@pytest.mark.rest
@pytest.mark.parametrize(
    ("log", "schema", "values", "seed"),
    [
        ("outbox_transitions", TRANSITIONS, _values, 1),
        ("outbox_transitions", TRANSITIONS, _values, 2),
        ("outbox_events", EVENTS, _event_values, 1),
        ("outbox_commands", COMMANDS, _command_values, 1),
        ("outbox_relays", BEATS, _beat_values, 1),
    ],
)
def test_arrow_asks_what_the_table_asks(
    spark: SparkSession, empty: Tables, log: str, schema: pa.Schema, values: Values, seed: int
) -> None:
    """Each CHECK constraint of a log says the same of any row, whether Spark asks it or Arrow."""
    properties: Mapping[str, str] = {
        row["key"]: row["value"] for row in spark.sql(f"show tblproperties {empty[log]}").collect()
    }
    checks = {
        name.removeprefix("delta.constraints."): sql
        for name, sql in properties.items()
        if name.startswith("delta.constraints.")
    }
    assert CHECKS[log] == len(checks)
    random_ = random.Random(seed)
    rows = pa.Table.from_pylist([values(random_) for _ in range(3000)], schema=schema)
    asked = spark.createDataFrame(rows).selectExpr(
        *(f"coalesce({sql}, false) as {name}" for name, sql in checks.items())
    )
    theirs = asked.toArrow().to_pydict()
    for name, sql in checks.items():
        arrow = condition(sql)
        assert arrow is not None, name
        ours = ds.dataset(rows).to_table(columns={name: arrow})[name].fill_null(False)
        assert theirs[name] == ours.to_pylist(), name
        assert {True, False} - ({False} if name == OF_TEXT else set()) == set(theirs[name]), name
