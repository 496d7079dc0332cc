"""Syncs what is committed to the disk before anybody relies on it (decision 0052).

Neither Spark nor Delta's store for local files syncs anything. So whoever of us acknowledges an
append, or decides on what was read, first has the logs synced up to their last commit, whoever made
it: of what was acknowledged, everything that it rests on is on the disk as well.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from delta_outbox.core.disk import checksum_of, sync_below, sync_path
from delta_outbox.core.errors import NotSynced
from delta_outbox.core.tables import LOGS, PROJECTION
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import read_commit
from delta_outbox.delta.storage_errors import refused_write
from delta_outbox.delta.storage_places import LOCAL, Place, places_of
from delta_outbox.runtime.log_folder import (
    LAST_CHECKPOINT,
    Identity,
    commit_file,
    commit_versions,
    identity_of,
    last_checkpoint,
    last_commit,
)
from delta_outbox.runtime.session import Machine, spark_here

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MOST_FILES: Final = 100  # synced one by one; of more, the whole file system is synced at once


@dataclass(frozen=True, kw_only=True)
class _Mark:
    """A commit of a log; it and all before it are on the disk.

    Args:
        version: of the commit.
        file: what tells the commit's file from another one in its place.
        checkpoint: the same of the file that names the last checkpoint; None if there is none.
    """

    version: int
    file: Identity | None
    checkpoint: Identity | None


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What is known of the outboxes of a Spark; threads take turns."""

    logs: dict[str, Sequence[Path]] = field(default_factory=dict)  # by the schema
    marks: dict[Path, _Mark] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=set)  # whose names are on the disk
    files: set[Path] = field(default_factory=set)  # on the disk before a commit names them
    turns: threading.Lock = field(default_factory=threading.Lock)


_failed: list[str] = []
"""Why the disk did not take something of this process: the system has forgotten what that was, and
would call it synced the next time."""

_of_sparks: weakref.WeakKeyDictionary[SparkContext | Machine, _Known] = weakref.WeakKeyDictionary()


def know_places(spark: SparkSession, *, schema: str, places: Iterable[Place]) -> None:
    """Note where the tables of an outbox lie, so that it need not be asked for.

    Args:
        spark: the session.
        schema: of the outbox.
        places: of its logs and its projection.

    Raises:
        NotSynced: the folder of one is not there.
    """
    here = spark_here(spark)
    if here is not None:
        logs = _of_sparks.setdefault(here, _Known()).logs
        if schema not in logs:
            logs[schema] = _logs_at(spark, places)


def sync_outbox(spark: SparkSession, schema: str) -> None:
    """Return when all that is committed to an outbox is on the disk, whoever committed it.

    Of logs that lie elsewhere (an object store, HDFS, a server on another machine) the word of
    that store is taken.

    Args:
        spark: the session.
        schema: of the outbox.

    Raises:
        NotSynced: the disk did not take it; from then on nothing of this process is believed.
        DiskFull: it had no room for it; the same.
        TornCommit: a commit is not whole.
    """
    here = spark_here(spark)
    if here is None:
        return
    known = _of_sparks.setdefault(here, _Known())
    with known.turns:
        if schema not in known.logs:
            places = places_of(spark, schema=schema, names=(*LOGS, PROJECTION))
            known.logs[schema] = _logs_at(spark, places.values())
        with _syncing(schema):
            _sync(known, known.logs[schema])


def sync_table(spark: SparkSession, table: str) -> None:
    """Return when all that is committed to a table, or anything else on its disk, is there.

    Args:
        spark: the session.
        table: its name; if it lies elsewhere, the word of that store is taken.

    Raises:
        NotSynced: the disk did not take it.
        DiskFull: it had no room for it.
    """
    log = CommitHistory(spark).folder(table)
    if log is not None:
        sync_folder(log.parent, what=table)


def sync_folder(folder: Path, *, what: object) -> None:
    """Return when everything below a folder is on the disk.

    Args:
        folder: of a table, a warehouse or a home.
        what: to call it in an error.

    Raises:
        NotSynced: the disk did not take it.
        DiskFull: it had no room for it.
    """
    with _syncing(what):
        sync_below([folder])


def sync_files(spark: SparkSession, table: Path, files: Sequence[Path]) -> None:
    """Return when data files that no commit names yet are on the disk.

    Args:
        spark: the session that commits them.
        table: the folder of the table.
        files: below it.

    Raises:
        NotSynced: the disk did not take them.
        DiskFull: it had no room for them.
    """
    here = spark_here(spark)
    assert here is not None
    known = _of_sparks.setdefault(here, _Known())
    with known.turns:
        with _syncing(table, are_named=False):
            for file in files:
                sync_path(file)
        with _syncing(table):
            _sync_names(known, [(table, file) for file in files])
        known.files.update(files)


@contextmanager
def _syncing(what: object, *, are_named: bool = True) -> Iterator[None]:
    """Sync within the block.

    Args:
        what: to call it in an error.
        are_named: whether anything may rest on it already: after a failure nothing is believed.
    """
    if _failed:
        raise NotSynced(what=what, cause=_failed[0])
    try:
        yield
    except OSError as error:
        cause = error.strerror or type(error).__name__
        if are_named and error.filename is None:  # else it could not even be opened
            _failed.append(cause)
        raise refused_write(error, table=str(what)) or NotSynced(what=what, cause=cause) from error


def _logs_at(spark: SparkSession, places: Iterable[Place]) -> Sequence[Path]:
    """Return the logs of tables that lie on this machine, and note where each lies."""
    found = []
    history = CommitHistory(spark)
    for place in places:
        log = None
        if place.scheme == LOCAL:
            log = place.path / "_delta_log"
            if not log.is_dir():
                log = Path(unquote(str(log)))
            if not log.is_dir():  # else it would never be synced, and nobody would know
                raise NotSynced(what=place.table, cause=f"{log} is not there")
            found.append(log)
        history.know_folder(place.table, log)
    return found


def _sync(known: _Known, logs: Sequence[Path]) -> None:
    """Sync what has come to logs since they were synced last."""
    marks = {log: _mark_after(log, known.marks.get(log)) for log in logs if log.is_dir()}
    moved = {log: mark for log, mark in marks.items() if mark != known.marks.get(log)}
    files: list[tuple[Path, Path]] | None = []
    for log, mark in moved.items():
        before = known.marks.get(log)
        found = None if before is None else _written(log, before, mark)
        if files is None or found is None or len(files) + len(found) > MOST_FILES:
            files = None
        else:
            files += found
    if files is None or not _sync_each(known, files):
        sync_below(log.parent for log in moved)
    known.marks.update(moved)


def _mark_after(log: Path, before: _Mark | None) -> _Mark:
    """Return the mark at the newest commit of a log."""
    if before is not None and before.file is not None and _is_there(log, before):
        version = before.version
    else:  # the first time; or another table has taken the place of the one that we knew
        version = max(commit_versions(log), default=-1)
    version = last_commit(log, version)
    return _Mark(
        version=version,
        file=identity_of(commit_file(log, version)),
        checkpoint=identity_of(log / LAST_CHECKPOINT),
    )


def _is_there(log: Path, mark: _Mark) -> bool:
    return identity_of(commit_file(log, mark.version)) == mark.file


def _written(log: Path, before: _Mark, now: _Mark) -> list[tuple[Path, Path]] | None:
    """Return the files that came to a table, each with the folder of the table.

    None where the commits do not tell them.
    """
    if not _is_there(log, before):
        return None
    found: list[Path] = []
    for version in range(before.version + 1, now.version + 1):
        actions = read_commit(log, version)
        if actions is None or actions.written is None:
            return None
        found += actions.written
        found.append(commit_file(log, version))
    if now.checkpoint != before.checkpoint:
        found += [log / LAST_CHECKPOINT, *log.glob(f"{last_checkpoint(log):020}.checkpoint*")]
    return [(log.parent, path) for path in found]


def _sync_each(known: _Known, files: Sequence[tuple[Path, Path]]) -> bool:
    """Sync files that commits name, and the names of those that are new; False if one is not where
    it was looked for: VACUUM has removed it, or its commit means another place.
    """
    new = [(table, path) for table, path in files if path not in known.files]
    for _, path in new:
        try:
            sync_path(path)
        except FileNotFoundError:
            return False
        with suppress(FileNotFoundError):
            sync_path(checksum_of(path))
    _sync_names(known, new)
    known.files.difference_update(path for _, path in files)
    return True


def _sync_names(known: _Known, files: Sequence[tuple[Path, Path]]) -> None:
    """Sync the folders in which new files have their names."""
    folders = dict.fromkeys(folder for one in files for folder in _to_sync(known, *one))
    for folder in folders:
        sync_path(folder)
    known.folders.update(folders)


def _to_sync(known: _Known, table: Path, path: Path) -> Iterator[Path]:
    """Yield the folder of a new file, and those above it whose own names may be new."""
    folder = path.parent
    yield folder
    while folder != table and folder not in known.folders:
        folder = folder.parent
        yield folder
