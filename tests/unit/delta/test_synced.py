"""What is synced: all at first, then what has come; and nothing is believed that failed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from delta_outbox.core import disk
from delta_outbox.core.errors import DiskFull, NotSynced, OutboxError
from delta_outbox.delta import durability
from delta_outbox.delta.storage_places import Place
from delta_outbox.runtime.log_folder import commit_file
from delta_outbox.runtime.session import Machine

SPARK: Any = SimpleNamespace(sparkContext=Machine())
EVERYTHING = "*"

Synced = list[str]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a table of the only outbox that a session has."""
    folder = tmp_path / "outbox_events"
    (folder / "_delta_log").mkdir(parents=True)
    monkeypatch.setattr(SPARK, "sparkContext", Machine())  # nothing is known of it
    monkeypatch.setattr(durability, "_failed", [])
    place = Place(table="outbox.outbox_events", location=f"file:{folder}")
    durability.know_places(SPARK, schema="outbox", places=[place])
    return folder


def record(patch: pytest.MonkeyPatch, folder: Path, *, knows_file_systems: bool = True) -> Synced:
    """Return what is synced from now on, below a folder."""
    seen: Synced = []
    fsync = os.fsync

    def one(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(str(path.relative_to(folder)))
        fsync(descriptor)

    def everything(_: int) -> bool:
        if knows_file_systems:
            seen.append(EVERYTHING)
        return knows_file_systems

    patch.setattr(os, "fsync", one)
    patch.setattr(disk, "_sync_file_system", everything)
    return seen


@pytest.fixture
def calls(table: Path, monkeypatch: pytest.MonkeyPatch) -> Synced:
    """Return what is synced from now on, below the table."""
    return record(monkeypatch, table)


def commit(table: Path, version: int, *files: str, kind: str = "add") -> None:
    """Commit data files, which are made."""
    for name in files:
        (table / name).parent.mkdir(exist_ok=True)
        (table / name).write_text("rows")
    actions = [{"commitInfo": {}}, *({kind: {"path": name}} for name in files)]
    commit_file(table / "_delta_log", version).write_text("\n".join(map(json.dumps, actions)))


def sync(calls: Synced) -> list[str]:
    """Sync the outbox, and return what that was, in order."""
    calls.clear()
    durability.sync_outbox(SPARK, "outbox")
    return sorted(calls)


def test_at_first_all_then_what_has_come(table: Path, calls: Synced) -> None:
    """A process syncs all that there is, and from then on the files of each commit, the commit, and
    the folders that hold their names; where nothing has come, nothing.
    """
    commit(table, 0)
    commit(table, 1, "day=1/a.parquet")
    assert [EVERYTHING] == sync(calls)
    assert [] == sync(calls)
    log = "_delta_log"
    commit(table, 2, "day=1/b.parquet")
    of_table = [".", f"{log}/{2:020}.json"]
    assert sorted([*of_table, log, "day=1", "day=1/b.parquet"]) == sync(calls)
    commit(table, 3, "day=1/c.parquet", "day=2/d.parquet")
    commit(table, 4, "_change_data/e.parquet", kind="cdc")
    new = ["day=1/c.parquet", "day=2/d.parquet", "_change_data/e.parquet"]
    folders = [".", log, "day=1", "day=2", "_change_data"]
    assert sorted([*new, *folders, *(f"{log}/{n:020}.json" for n in (3, 4))]) == sync(calls)
    assert [] == sync(calls)


def test_what_is_synced_before_its_commit_is_not_synced_again(table: Path, calls: Synced) -> None:
    """A data file that was synced before a commit named it costs nothing more."""
    commit(table, 0)
    sync(calls)
    file = table / "day=1" / "a.parquet"
    file.parent.mkdir()
    file.write_text("rows")
    calls.clear()
    durability.sync_files(SPARK, table, [file])
    assert sorted([".", "day=1", "day=1/a.parquet"]) == sorted(calls)
    log = table / "_delta_log"
    commit_file(log, 1).write_text(json.dumps({"add": {"path": "day=1/a.parquet"}}))
    assert [".", "_delta_log", f"_delta_log/{1:020}.json"] == sync(calls)


def test_a_checkpoint_is_synced(table: Path, calls: Synced) -> None:
    """A checkpoint, its checksums, and the file that names the last one are synced, late or not."""
    commit(table, 0)
    sync(calls)
    log = table / "_delta_log"
    (log / f"{0:020}.checkpoint.parquet").write_text("state")
    (log / f".{0:020}.checkpoint.parquet.crc").write_text("checksums")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 0}))
    names = [
        f".{0:020}.checkpoint.parquet.crc",
        f"{0:020}.checkpoint.parquet",
        "_last_checkpoint",
    ]
    assert [".", "_delta_log", *(f"_delta_log/{name}" for name in names)] == sync(calls)


def _many(table: Path) -> None:
    commit(table, 1, *(f"day=1/{number}.parquet" for number in range(durability.MOST_FILES)))


def _vector(table: Path) -> None:
    add = {"path": "a.parquet", "deletionVector": {"storageType": "u"}}
    commit_file(table / "_delta_log", 1).write_text(json.dumps({"add": add}))


def _elsewhere(table: Path) -> None:
    add = {"path": "file:/somewhere/a.parquet"}
    commit_file(table / "_delta_log", 1).write_text(json.dumps({"add": add}))


def _another(table: Path) -> None:
    commit_file(table / "_delta_log", 0).unlink()
    commit(table, 0)


def _not_there(table: Path) -> None:
    commit(table, 1, "a.parquet")
    (table / "a.parquet").unlink()


@pytest.mark.parametrize("change", [_many, _vector, _elsewhere, _another, _not_there])
def test_what_is_not_told_file_by_file_is_synced_as_a_whole(
    table: Path, calls: Synced, change: Callable[[Path], None]
) -> None:
    """Very many files, files that a commit does not name by a path in the table, or that are not
    there, or another table in the place of the one that was known, are synced with the whole file
    system.
    """
    commit(table, 0)
    sync(calls)
    change(table)
    assert [EVERYTHING] == sync(calls)
    assert [] == sync(calls)


@pytest.mark.parametrize(
    ("number", "error", "again"),
    [(errno.EIO, NotSynced, NotSynced), (errno.ENOSPC, DiskFull, NotSynced)],
)
def test_after_a_failure_nothing_is_believed(
    table: Path, calls: Synced, number: int, error: type[OutboxError], again: type[OutboxError]
) -> None:
    """What the disk did not take is never called synced, although a second call would succeed: the
    system has forgotten it by then.
    """
    commit(table, 0)
    sync(calls)
    commit(table, 1, "a.parquet")
    with (
        mock.patch.object(os, "fsync", side_effect=OSError(number, os.strerror(number))),
        pytest.raises(error, match="outbox"),
    ):
        durability.sync_outbox(SPARK, "outbox")
    with pytest.raises(again, match=os.strerror(number)):
        durability.sync_outbox(SPARK, "outbox")


@pytest.mark.parametrize("way", ["names of new files", "folder"])
def test_after_any_failure_nothing_is_believed(table: Path, calls: Synced, way: str) -> None:
    """Whatever it was that the disk did not take, from then on nothing of this process is called
    synced; a new data file that no commit names yet is nobody's loss.
    """
    commit(table, 0)
    sync(calls)
    file = table / "a.parquet"
    file.write_text("rows")
    fsync = os.fsync

    def fails(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir() or way != "names of new files":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    def all_fails(_: int) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with (
        mock.patch.object(os, "fsync", side_effect=OSError(errno.EIO, "x")),
        pytest.raises(NotSynced),
    ):
        durability.sync_files(SPARK, table, [file])
    assert [] == sync(calls)
    ways = {
        "names of new files": lambda: durability.sync_files(SPARK, table, [file]),
        "folder": lambda: durability.sync_folder(table, what=table),
        "outbox": lambda: durability.sync_outbox(SPARK, "outbox"),
    }
    with (
        mock.patch.object(os, "fsync", fails),
        mock.patch.object(disk, "_sync_file_system", all_fails),
        pytest.raises(NotSynced),
    ):
        ways[way]()
    for again in ways.values():
        with pytest.raises(NotSynced, match=os.strerror(errno.EIO)):
            again()


def test_a_log_whose_checkpoint_tells_nothing_is_followed(table: Path, calls: Synced) -> None:
    """Where Delta has removed the first commits, and the file that names the last checkpoint cannot
    be read, what comes is synced all the same.
    """
    for version in (7, 8):
        commit(table, version)
    (table / "_delta_log" / "_last_checkpoint").write_text("")
    assert [EVERYTHING] == sync(calls)
    commit(table, 9, "a.parquet")
    assert "a.parquet" in sync(calls)
    assert [] == sync(calls)


def test_a_folder_that_is_not_there_is_said(table: Path) -> None:
    """A table whose folder is not where the catalog says is never taken for one that is synced."""
    place = Place(table="outbox.outbox_state", location=f"file:{table}/elsewhere")
    with pytest.raises(NotSynced, match=r"outbox_state.*elsewhere"):
        durability.know_places(SPARK, schema="other", places=[place])


def test_a_server_elsewhere_is_believed(calls: Synced) -> None:
    """Of a session whose files may be on another machine nothing is synced here."""
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    durability.sync_outbox(remote, "outbox")
    assert [] == calls


def test_without_a_call_for_a_file_system_each_file_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system cannot sync a file system at once, each file and folder below is synced."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "c").write_text("c")
    seen = record(monkeypatch, tmp_path, knows_file_systems=False)
    disk.sync_below([tmp_path])
    assert [".", "a", "a/b", "a/c"] == sorted(seen)


def test_a_new_folder_has_its_name_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is made, with those above it, is named on the disk; one that is there is not
    touched.
    """
    seen = record(monkeypatch, tmp_path)
    disk.make_folder(tmp_path / "a" / "b")
    assert [".", "a"] == sorted(seen)
    seen.clear()
    disk.make_folder(tmp_path / "a" / "b")
    assert [] == seen


def test_a_file_system_is_really_asked(tmp_path: Path) -> None:
    """The call for a whole file system succeeds on this machine, and fails for what is none."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    assert disk._sync_file_system(descriptor)
    os.close(descriptor)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        disk._sync_file_system(descriptor)
