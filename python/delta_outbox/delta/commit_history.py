"""Reads the newest commits of a table: version, operation, and commit tag.

`describe history` runs a Spark job for each question, a tenth of what a relay does on a quiet
outbox. Where Spark's driver works on this machine, it is only asked where the table lies; from the
last checkpoint on, and later from the commit that is known, it is enough to look whether a file
follows, as Delta's own readers do.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from delta_outbox.delta.commits import Commit, read_commit
from delta_outbox.runtime.log_folder import last_checkpoint, last_commit
from delta_outbox.runtime.session import Machine, spark_here

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class _Learned:
    """What is known of the tables of a Spark, by their full names; threads look as well.

    Args:
        folders: the log that Delta keeps of each, None where it is not ours to read.
        versions: of the newest commit of those that can be read, when it was last asked for.
    """

    folders: dict[str, Path | None] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)


class CommitHistory:
    """The histories of tables.

    Args:
        spark: the session to ask with. What one session of a Spark has learned, all of it know.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._here = spark_here(spark)
        shared = self._here and _of_sparks.setdefault(self._here, _Learned())
        self._learned = shared or _Learned()

    def newest(self, table: str) -> Commit | None:
        """Return the newest commit of a table, None if it has none.

        Args:
            table: its full name.
        """
        versions = self._learned.versions
        folder, known = self.folder(table), versions.pop(table, None)
        if folder is not None:
            commit = _follow(folder, last_checkpoint(folder) if known is None else known)
            if commit is not None:
                versions[table] = commit.version
                return commit
        return next(self.commits(table, limit=1), None)

    def newest_here(self, table: str) -> Commit | None:
        """Return the newest commit of a table whose log is on this machine, None of another one.

        Args:
            table: its full name.
        """
        return None if self.folder(table) is None else self.newest(table)

    def back(self, table: str, *limits: int | None) -> Iterator[Commit]:
        """Yield the commits of a table, the newest first, fetched as far as they are asked for.

        Where Delta is asked, with each limit the history is read again, so that some come once
        more, and newer ones may come late.

        Args:
            table: its full name.
            limits: how many are read when the newest one, or those before, were not enough; None
                reads all.
        """
        newest = self.newest(table)
        if newest is None:
            return
        yield newest
        folder = self.folder(table)
        if folder is None:
            for limit in limits:
                yield from self.commits(table, limit=limit)
            return
        most = (
            newest.version if None in limits else max((limit or 0 for limit in limits), default=0)
        )
        for version in range(newest.version - 1, max(-1, newest.version - most - 1), -1):
            commit = _read(folder, version)
            if commit is None:  # Delta has removed it, with all that are older
                return
            yield commit

    def at(self, table: str, version: int | None) -> Commit | None:
        """Return a commit of a table, None if it is not there (any more).

        Args:
            table: its full name.
            version: its number; the newest one if None.
        """
        newest = self.newest(table)
        if newest is None or version is None or newest.version == version:
            return newest
        return next(self._between(table, version, version, newest=newest), None)

    def after(self, table: str, known: Commit, *, most: int) -> list[Commit] | None:
        """Return the commits after a known one, the oldest first.

        Args:
            table: its full name.
            known: of this table, as it was once told.
            most: how many are read.

        Returns:
            None if there are more, or if the known one is not there any more.
        """
        newest = self.newest(table)
        if newest is None or not 0 <= newest.version - known.version <= most:
            return None
        found = [*self._between(table, known.version, newest.version, newest=newest)]
        is_whole = len(found) == newest.version - known.version + 1
        return found[1:] if is_whole and found[0] == known else None

    def writers(self, table: str, version: int) -> Set[str]:
        """Return the numbered writers that a commit is of; none where its file does not tell.

        Args:
            table: its full name.
            version: of the commit.
        """
        folder = self.folder(table)
        actions = None if folder is None else read_commit(folder, version)
        return set() if actions is None else actions.numbers.keys()

    def _between(self, table: str, first: int, last: int, *, newest: Commit) -> Iterator[Commit]:
        """Yield those of the commits from one to another that are there, the oldest first."""
        folder = self.folder(table)
        if first == newest.version:
            yield newest
        elif folder is not None:
            read = (_read(folder, version) for version in range(first, last + 1))
            yield from (commit for commit in read if commit is not None)
        else:
            told = [*self.commits(table, limit=max(1, newest.version - first + 1))]
            yield from (commit for commit in reversed(told) if first <= commit.version <= last)

    def commits(self, table: str, *, limit: int | None = None) -> Iterator[Commit]:
        """Yield the newest commits of a table, the newest first, as Delta tells them.

        Args:
            table: its full name.
            limit: how many at most; all if left out.
        """
        most = "" if limit is None else f" limit {int(limit)}"
        for row in self._spark.sql(f"describe history {table}{most}").collect():
            yield Commit(
                version=int(row["version"]),
                operation=str(row["operation"]),
                tag=row["userMetadata"],
                at=round(row["timestamp"].timestamp() * 1000),
            )

    def folder(self, table: str) -> Path | None:
        """Return where Delta keeps the log of a table; None if it is not on this machine.

        Args:
            table: its full name.
        """
        folders = self._learned.folders
        if table not in folders:
            folders[table] = self._folder(table)
        return folders[table]

    def know_folder(self, table: str, folder: Path | None) -> None:
        """Note where Delta keeps the log of a table, so that it need not be asked for.

        Args:
            table: its full name.
            folder: the log; None if it is not on this machine.
        """
        self._learned.folders[table] = folder

    def _folder(self, table: str) -> Path | None:
        if self._here is None:
            return None
        rows = self._spark.sql(f"describe table extended {table}").collect()
        # Behind the columns, of which one may have that name as well.
        found = (row["data_type"] for row in reversed(rows) if row["col_name"] == "Location")
        scheme, _, path = next(found, "").partition(":")
        return Path(path) / "_delta_log" if scheme == "file" else None


_of_sparks: weakref.WeakKeyDictionary[SparkContext | Machine, _Learned] = (
    weakref.WeakKeyDictionary()
)


def _follow(folder: Path, version: int) -> Commit | None:
    """Return the newest commit from a known one on; None if that is no longer there."""
    return _read(folder, last_commit(folder, version))


def _read(folder: Path, version: int) -> Commit | None:
    """Return a commit; None if it is not there."""
    actions = read_commit(folder, version)
    return None if actions is None else actions.commit
