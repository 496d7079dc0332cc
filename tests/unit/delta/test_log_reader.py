"""What commits have added is read from their files, or asked of Spark, and nobody hears which."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.delta.log_folders import commit

from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.delta import log_reader
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import Commit
from delta_outbox.delta.files.event_files import LOCATED
from delta_outbox.delta.log_reader import LogReader

LOG = "ours.outbox_events"
DAYS = ("2026-01-01", "2026-01-02")


class AskedSpark(Exception):
    """Spark was asked; the message is the question."""


class OnlyFiles:
    """A session that answers nothing."""

    def sql(self, text: str) -> Any:
        """Say what was asked."""
        raise AskedSpark(text)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a log whose first commit has made the table."""
    folder = tmp_path / "_delta_log"
    folder.mkdir()
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}
    metadata = {"schemaString": '{"fields": []}', "partitionColumns": [], "configuration": {}}
    told = {"setTransactions": [], "domainMetadata": [], "metadata": metadata, "protocol": protocol}
    (folder / f"{0:020}.crc").write_text(json.dumps(told), encoding="utf-8")
    commit(folder, 0)
    newest = Commit(version=0, operation="CREATE TABLE", tag=None, at=0)
    monkeypatch.setattr(CommitHistory, "__init__", lambda *_: None)
    monkeypatch.setattr(CommitHistory, "folder", lambda *_: folder)
    monkeypatch.setattr(CommitHistory, "newest", lambda *_: newest)
    return folder


def append(folder: Path, version: int, *ids: str, day: str = DAYS[0]) -> None:
    """Append a file of events."""
    name = f"{version}.parquet"
    pq.write_table(pa.table({"event_id": ids}), folder.parent / name)
    add = {
        "path": name,
        "dataChange": True,
        "stats": json.dumps({"numRecords": len(ids)}),
        "partitionValues": {"created_date": day},
    }
    commit(folder, version, {"add": add})


def reader() -> LogReader:
    """Return a reader that has only files to ask."""
    session: Any = OnlyFiles()
    return LogReader(session)


def test_of_a_log_elsewhere_only_the_feed_is_asked(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the log is not on this machine, its newest commit is not asked for: that is a query."""
    del log
    monkeypatch.setattr(CommitHistory, "folder", lambda *_: None)
    monkeypatch.setattr(CommitHistory, "newest", lambda *_: pytest.fail("a query for nothing"))
    with pytest.raises(AskedSpark, match="table_changes"):
        reader().counts(LOG, after=0, to=1)


def test_rows_are_read_from_files(log: Path) -> None:
    """Rows come with their commits and with where they lie; reading ends where it is told to, but
    for a first commit, of which no more than may be held at once is read.
    """
    append(log, 1, "a", "b")
    append(log, 2, "c", day=DAYS[1])
    columns = ("event_id", "created_date", "_commit_version", "row")
    found = reader().added(LOG, after=0, to=2, columns=columns)
    assert found is not None
    first, second = date(2026, 1, 1), date(2026, 1, 2)
    values = [row.values() for row in found.rows.to_pylist()]
    assert [("a", first, 1, 0), ("b", first, 1, 1), ("c", second, 2, 0)] == [*map(tuple, values)]
    part = reader().added(LOG, after=0, to=2, columns=("event_id", "file"), most=1)
    assert part is not None
    assert (2, 1) == (part.rows.num_rows, part.to)
    assert {str(log.parent / "1.parquet")} == set(part.rows["file"].to_pylist())
    nothing = reader().added(LOG, after=2, to=2, columns=("event_id",))
    assert nothing is not None
    assert (0, ["event_id"]) == (nothing.rows.num_rows, nothing.rows.column_names)


def test_a_commit_that_is_too_large_is_not_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first commit with more rows than may be held at once is for the caller to ask about."""
    monkeypatch.setattr(log_reader, "LARGEST", 2)
    append(log, 1, "a", "b", "c")
    assert reader().added(LOG, after=0, to=1, columns=("event_id",), most=1) is None
    whole = reader().added(LOG, after=0, to=1, columns=("event_id",))
    assert whole is not None
    assert 3 == whole.rows.num_rows


def test_files_answer_what_is_asked_of_them(log: Path) -> None:
    """How many rows a commit has, what they are by groups, and whether a value is there twice."""
    append(log, 1, "b", "a")
    append(log, 2, "c", day=DAYS[1])
    append(log, 3, "é", "d")
    given: dict[str, Any] = {"after": 0, "to": 3}
    assert {1: 2, 2: 1, 3: 2} == reader().counts(LOG, **given)
    groups = reader().groups(LOG, **given, by=("created_date",), of="event_id")
    day = date(2026, 1, 1).toordinal() - date(1970, 1, 1).toordinal()
    expected = [(day, 4, "a", "é"), (day + 1, 1, "c", "c")]
    assert expected == sorted(tuple(group.values()) for group in groups)
    assert [] == reader().groups(LOG, after=3, to=3, by=("created_date",), of="event_id")
    assert not reader().may_repeat(LOG, **given, column="event_id")
    append(log, 4, "c")
    assert reader().may_repeat(LOG, after=0, to=4, column="event_id")


QUESTIONS: list[Callable[[], object]] = [
    lambda: reader().added(LOG, after=0, to=1, columns=("event_id",)),
    lambda: reader().counts(LOG, after=0, to=1),
    lambda: reader().groups(LOG, after=0, to=1, by=("created_date",), of="event_id"),
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("reason", ["another reader", "a removal", "no checksum"])
def test_what_files_do_not_tell_is_asked_of_spark(
    log: Path, question: Callable[[], object], reason: str
) -> None:
    """A table that asks more of its readers, a commit that does more than append, and a log that
    does not tell what its table is, are Spark's to read.
    """
    append(log, 1, "a")
    if reason == "another reader":
        commit(log, 2, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})
    elif reason == "a removal":
        commit(log, 1, {"remove": {"path": "0.parquet", "dataChange": True}})
    else:
        (log / f"{0:020}.crc").unlink()
    with pytest.raises(AskedSpark, match=r"table_changes\('ours.outbox_events', 1, 1\)"):
        question()
    assert reader().may_repeat(LOG, after=0, to=1, column="event_id")
    feed = "table_changes('ours.outbox_events', 1, 1) where _change_type = 'insert'"
    assert feed == reader().relation(LOG, after=0, to=1, columns=("event_id",), few=10)


@pytest.mark.parametrize("question", [QUESTIONS[0], QUESTIONS[2]])
def test_a_file_that_is_gone_is_asked_of_spark(log: Path, question: Callable[[], object]) -> None:
    """What cannot be read after all, because it was written anew or purged, is Spark's to read."""
    append(log, 1, "a")
    (log.parent / "1.parquet").unlink()
    with pytest.raises(AskedSpark):
        question()


def test_a_past_that_is_gone_has_an_error_of_its_own(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where maintenance has removed the commits, and so the change feed, the error says so."""

    def gone(_: object, text: str) -> None:
        raise RuntimeError(f"[DELTA_LOG_FILE_NOT_FOUND] {text}")

    monkeypatch.setattr(OnlyFiles, "sql", gone)
    with pytest.raises(ChangeFeedGone, match="no longer holds version 8"):
        reader().added(LOG, after=7, to=8, columns=("event_id",))


def test_where_events_lie_is_told_as_far_as_it_is_known(log: Path) -> None:
    """A delivery gets the file and the row of its event, or none where the commit is gone."""
    append(log, 1, "a", "b")
    deliveries = LOCATED.empty_table().drop_columns(["file", "row"])
    rows = [
        {"event_id": name, "arrival": arrival, "ambiguous": False}
        for name, arrival in (("b", 1), ("x", 9))
    ]
    given = pa.Table.from_pylist(rows, schema=deliveries.schema)
    found = reader().located(LOG, given)
    assert [1, None] == found["row"].to_pylist()
    assert [str(log.parent / "1.parquet"), None] == found["file"].to_pylist()
    assert found is reader().located(LOG, found)
    (log.parent / "1.parquet").unlink()
    assert [None, None] == reader().located(LOG, given)["row"].to_pylist()
