"""Commits that a power cut has torn are named before anything is done, with what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_outbox.core.errors import TornCommit
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.log_folder import actions_of, commit_file
from delta_outbox.runtime.torn_commits import (
    WRITTEN_OUT,
    check_commits,
    remove_unmade,
    torn_commits,
)

PARQUET = b"PAR1 rows PAR1"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home, at a path that a shell has to be told of, with an outbox of two tables."""
    home = Home(root=tmp_path / "it's a home").create()
    for name in ("outbox_events", "outbox_state"):
        log = home.warehouse / "outbox.db" / name / "_delta_log"
        log.mkdir(parents=True)
        for version in range(4):
            commit(log, version)
    return home


@pytest.fixture
def log(home: Home) -> Path:
    """Return the log of a table with commits 0 to 3."""
    return home.warehouse / "outbox.db" / "outbox_events" / "_delta_log"


def commit(log: Path, version: int, *more: dict[str, Any]) -> Path:
    """Append a commit of one data file, with what Delta leaves beside it; return the data file."""
    name = f"day=1/part {version}.parquet"
    file = log.parent / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(PARQUET)
    add = {"path": name.replace(" ", "%20"), "size": len(PARQUET), "dataChange": True}
    lines = [{"commitInfo": {"operation": "WRITE"}}, {"add": add}, *more]
    commit_file(log, version).write_text("\n".join(map(json.dumps, lines)) + "\n")
    for written in (file, commit_file(log, version)):
        _checksums(written)
    (log / f"{version:020}.crc").write_text("{}")
    return file


def _name(file: Path) -> str:
    return file.name


def _checksums(file: Path) -> Path:
    """Write checksums as long as Hadoop's are, and return their file."""
    checksums = file.with_name(f".{file.name}.crc")
    chunks = -(-file.stat().st_size // 512)
    checksums.write_bytes(b"crc\0" + (512).to_bytes(4) + b"sums" * chunks)
    return checksums


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5])


def _zeros_behind(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))


@pytest.mark.parametrize("tear", [_empty, _zeros, _cut, _zeros_behind])
@pytest.mark.parametrize("what", ["commit", "data file", "checksums"])
def test_what_is_torn_is_named_and_its_remedy_helps(
    home: Home, log: Path, tear: Callable[[Path], None], what: str
) -> None:
    """A commit that is empty, cut or zeros, or whose data file is, is named by its file; after the
    commands of the remedy it is gone, with what came after it and all that Delta left beside it.
    """
    check_commits(home)
    data = log.parent / "day=1/part 2.parquet"
    torn = {"commit": commit_file(log, 2), "data file": data, "checksums": _checksums(data)}
    tear(torn[what])
    if tear is _empty and what == "commit":  # others have followed: Delta has taken it
        tear(commit_file(log, 3))
    with pytest.raises(TornCommit) as caught:
        check_commits(home)
    assert str(commit_file(log, 2)) in str(caught.value)
    [_, command, *_] = caught.value.remedy.split("`")
    subprocess.run(["bash", "-ec", command], check=True)
    check_commits(home)
    assert [commit_file(log, 0), commit_file(log, 1)] == sorted(log.glob("*.json"))
    assert [f".{n:020}.json.crc" for n in range(2)] == sorted(map(_name, log.glob(".*.crc")))
    assert [f"{n:020}.crc" for n in range(2)] == sorted(map(_name, log.glob("[!.]*.crc")))
    assert 6 == len(list((home.root / "torn" / "outbox_events").iterdir()))


def test_a_table_that_was_being_made_is_made_again(home: Home, log: Path) -> None:
    """Where the first commit of a table is torn, the remedy is to make the table again."""
    _zeros(commit_file(log, 0))
    with pytest.raises(TornCommit) as caught:
        check_commits(home)
    [_, command, then, *_] = re.split(r"`(?:, and `)?", caught.value.remedy)
    assert "outbox init" == then
    subprocess.run(["bash", "-ec", command], check=True)
    check_commits(home)
    assert [] == list(log.iterdir())


@pytest.mark.parametrize("tear", [_empty, _zeros, _cut])
@pytest.mark.parametrize("what", ["itself", "checksums"])
def test_a_torn_checkpoint_is_named_and_its_remedy_takes_nothing_else(
    home: Home, log: Path, tear: Callable[[Path], None], what: str
) -> None:
    """A checkpoint that is torn, or its checksums, is named; after the remedy all commits are
    there, which say what it said.
    """
    checkpoint = log / f"{2:020}.checkpoint.parquet"
    checkpoint.write_bytes(PARQUET)
    (log / "_last_checkpoint").write_text(json.dumps({"version": 2}))
    checksums = _checksums(checkpoint)
    check_commits(home)
    tear(checkpoint if what == "itself" else checksums)
    with pytest.raises(TornCommit, match=checkpoint.name) as caught:
        check_commits(home)
    [_, command, *_] = caught.value.remedy.split("`")
    subprocess.run(["bash", "-ec", command], check=True)
    check_commits(home)
    assert [commit_file(log, version) for version in range(4)] == sorted(log.glob("*.json"))
    assert [] == [*log.glob("*checkpoint*"), *log.glob(".*checkpoint*")]


def test_what_was_taken_for_nothing_stays_so(home: Home, log: Path) -> None:
    """An empty commit that others have followed was lost long ago, and stops nobody."""
    _empty(commit_file(log, 2))
    check_commits(home)
    assert [] == list(actions_of(log, 2))


def test_what_was_replaced_may_be_gone(log: Path) -> None:
    """A data file that a later commit has removed is nobody's loss."""
    commit(log, 1).unlink()
    commit(log, 4, {"remove": {"path": "day=1/part%201.parquet", "dataChange": False}})
    assert () == torn_commits(log)


def test_what_was_written_long_ago_is_not_looked_at(log: Path) -> None:
    """Before the last checkpoint nothing is looked at but what was written minutes before the
    newest commit at most; a checkpoint that is torn itself names none.
    """
    _zeros(commit_file(log, 1))
    assert (1, 3) == torn_commits(log)
    (log / "_last_checkpoint").write_text(json.dumps({"version": 2}))
    assert (1, 3) == torn_commits(log)
    newest = commit_file(log, 3).stat().st_mtime
    for version in (0, 1):
        os.utime(commit_file(log, version), (newest, newest - 2 * WRITTEN_OUT))
    assert () == torn_commits(log)
    (log / "_last_checkpoint").write_bytes(b"")
    assert (1, 3) == torn_commits(log)


def test_a_checkpoint_hides_no_torn_data_file(home: Home, log: Path) -> None:
    """A checkpoint of the last seconds names data files as whole that are torn: the commit of such
    a file is named, and its remedy takes the checkpoint as well.
    """
    for name in (f"{3:020}.checkpoint.parquet", f"{1:020}.checkpoint.parquet"):
        (log / name).write_bytes(PARQUET)
    (log / "_last_checkpoint").write_text(json.dumps({"version": 3}))
    check_commits(home)
    _empty(log.parent / "day=1/part 2.parquet")
    with pytest.raises(TornCommit, match=commit_file(log, 2).name) as caught:
        check_commits(home)
    [_, command, *_] = caught.value.remedy.split("`")
    subprocess.run(["bash", "-ec", command], check=True)
    check_commits(home)
    assert [f"{1:020}.checkpoint.parquet"] == sorted(map(_name, log.glob("*checkpoint*")))


@pytest.mark.parametrize("tear", [_empty, _zeros, _cut])
def test_a_reader_names_it_too(log: Path, tear: Callable[[Path], None]) -> None:
    """Whoever reads the last commit and finds it torn says so, by its file."""
    tear(commit_file(log, 3))
    with pytest.raises(TornCommit, match=commit_file(log, 3).name):
        list(actions_of(log, 3))


def test_what_is_there_of_a_table_without_a_commit_is_removed(home: Home) -> None:
    """A table that was never made is made as if nothing had been; one with a commit, a file of
    anybody, or data stays, and so does what is no outbox.
    """
    outbox = home.warehouse / "outbox.db"
    unmade = [outbox / "outbox_commands", outbox / "outbox_relays"]
    kept = [outbox / "outbox_events", outbox / "with_data", outbox / "with_a_file"]
    elsewhere = home.warehouse / "other.db" / "unmade"
    for table in (*unmade, *kept, elsewhere):
        (table / "_delta_log" / "_staged_commits").mkdir(parents=True, exist_ok=True)
    unfinished = unmade[1] / "_delta_log" / f".{0:020}.json.4f6a.tmp"
    unfinished.write_text("{")
    _checksums(unfinished)
    (outbox / "with_data" / "part-0.parquet").write_bytes(PARQUET)
    (outbox / "with_a_file" / "_delta_log" / "note.txt").write_text("mine")

    remove_unmade(home)

    assert [False, False] == [table.exists() for table in unmade]
    assert all(table.exists() for table in (*kept, elsewhere))
    check_commits(home)
