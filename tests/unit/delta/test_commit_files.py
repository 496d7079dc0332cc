"""What commits have added is read from their files, or left to Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.delta.log_folders import commit

from delta_outbox.delta.commits import added_files, read_commit
from delta_outbox.runtime.log_folder import commit_file


def add(path: str, rows: int | None, **given: Any) -> dict[str, Any]:
    """Return the action that adds a file."""
    stats = None if rows is None else json.dumps({"numRecords": rows})
    return {"add": {"path": path, "dataChange": True, "stats": stats, **given}}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the folder of a log whose first commit made the table."""
    folder = tmp_path / "_delta_log"
    folder.mkdir()
    commit(folder, 0, {"protocol": {}}, {"metaData": {}})
    return folder


def test_appends_are_read_in_order(log: Path) -> None:
    """The files of appends are told in the order of their commits, their names as they are on disk;
    what only rewrites rows adds none, and what has no rows is none.
    """
    commit(log, 1, add("created_date=2026-01-01/a%20b.parquet", 3), add("c.parquet", 2))
    commit(
        log,
        2,
        {"remove": {"path": "c.parquet", "dataChange": False}},
        add("rewritten.parquet", 5, dataChange=False),
    )
    commit(log, 3, add("empty.parquet", 0), add("d.parquet", 1))
    found = added_files(log, after=-1, to=3, most=100)
    assert found is not None
    files, to = found
    named = [(str(file.path.relative_to(log.parent)), file.version) for file in files]
    assert [
        ("created_date=2026-01-01/a b.parquet", 1),
        ("c.parquet", 1),
        ("d.parquet", 3),
    ] == named
    assert (6, 3) == (sum(file.rows for file in files), to)


def test_reading_ends_before_a_commit_that_is_too_much(log: Path) -> None:
    """What has more rows than asked is read in parts, and a single commit whatever it holds."""
    for version in (1, 2, 3):
        commit(log, version, add(f"{version}.parquet", 10))
    parts = [added_files(log, after=after, to=3, most=most) for after, most in ((0, 25), (2, 5))]
    found = [(sum(file.rows for file in part[0]), part[1]) for part in parts if part]
    assert [(20, 2), (10, 3)] == found


@pytest.mark.parametrize(
    "action",
    [
        {"remove": {"path": "a", "dataChange": True}},
        {"cdc": {"path": "a", "dataChange": False}},
        add("a.parquet", 1, deletionVector={"storageType": "u"}),
        add("a.parquet", None),
        add("s3://elsewhere/a.parquet", 1),
        add("/elsewhere/a.parquet", 1),
        {"add": {"path": "a.parquet", "dataChange": True, "stats": "{}"}},
    ],
)
def test_what_is_more_than_an_append_is_left_to_spark(log: Path, action: dict[str, Any]) -> None:
    """A commit that removes rows, or whose files cannot be read as they are, is not interpreted."""
    commit(log, 1, add("good.parquet", 1))
    commit(log, 2, action)
    assert added_files(log, after=1, to=2, most=100) is None
    assert added_files(log, after=0, to=1, most=100) is not None


def test_a_commit_that_is_gone_is_left_to_spark(log: Path) -> None:
    """Where Delta has removed an old commit, its change feed says what became of it."""
    assert added_files(log, after=0, to=1, most=100) is None


def test_a_commit_says_who_made_it_and_what_it_changes(log: Path) -> None:
    """What a commit tells is read once for all who ask, and anew where another is in its place."""
    commit(
        log,
        1,
        {"txn": {"appId": "a", "version": 7}},
        {"metaData": {"id": "m"}},
        {"cdc": {"path": "_change_data/c.parquet", "dataChange": False}},
        add("day=1/a.parquet", 2, partitionValues={"day": "1"}),
    )
    read = read_commit(log, 1)
    assert read is not None
    assert (1, "WRITE", None) == (read.commit.version, read.commit.operation, read.commit.tag)
    assert ({"a": 7}, {"id": "m"}, None) == (read.numbers, read.metadata, read.protocol)
    assert read.written is not None
    names = [str(path.relative_to(log.parent)) for path in read.written]
    assert (["_change_data/c.parquet", "day=1/a.parquet"], None) == (names, read.added)
    assert read is read_commit(log, 1)
    commit_file(log, 1).unlink()
    commit(log, 1, add("b.parquet", 1, partitionValues={"day": None}))
    other = read_commit(log, 1)
    assert other is not None
    assert other.added is not None
    assert [{"day": None}] == [file.partition for file in other.added]
