"""Reads from the folder of a log, without Spark, which data files its commits have added.

To ask Spark what a few commits have added takes half a second, all of it planning, and for many
rows ten times what Arrow takes to read them. Where driver, workers and table are on this machine,
the files of an append are in its commit, as Delta's protocol has it (`add` actions), and Parquet is
Parquet (decision 0024).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.files.added_files import Added, AddedFile
from delta_outbox.runtime.log_folder import actions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CommitFiles:
    """What commits have added to the tables of a Spark.

    Args:
        spark: the session that knows where the tables are.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._history = CommitHistory(spark)

    def added(self, table: str, *, after: int, to: int, most: int | None = None) -> Added | None:
        """Return the files that were added between two versions, in the order of the commits.

        What only rewrites rows (OPTIMIZE) adds none, and a file without rows counts as none.

        Args:
            table: the full name of a log.
            after: version, not included.
            to: version, included.
            most: rows, any number if None; reading ends before the commit that would exceed them.
                The first commit is read whatever it holds.

        Returns:
            None where it is Spark's to say: the table is elsewhere, a commit is gone, does more
            than append, or has files that do not tell their rows.
        """
        folder = self._history.folder(table)
        return None if folder is None else added_in(folder, after=after, to=to, most=most)


def added_in(folder: Path, *, after: int, to: int, most: int | None = None) -> Added | None:
    """Return what the commits of a log folder have added, as `CommitFiles.added` does.

    Args:
        folder: `_delta_log` of a table.
        after: version, not included.
        to: version, included.
        most: rows, any number if None.
    """
    found: list[AddedFile] = []
    total = 0
    for version in range(after + 1, to + 1):
        files = _read(folder, version)
        if files is None:
            return None
        total += sum(file.rows for file in files)
        if found and most is not None and total > most:
            return Added(files=found, to=version - 1)
        found += files
    return Added(files=found, to=to)


def _read(folder: Path, version: int) -> list[AddedFile] | None:
    found = []
    try:
        for action in actions_of(folder, version):
            if "cdc" in action or _changes(action.get("remove")):
                return None
            added = action.get("add")
            if added is not None and added["dataChange"]:
                file = _file(folder.parent, version, added)
                if file is None:
                    return None
                if file.rows:
                    found.append(file)
    except FileNotFoundError:  # Delta has removed what is old
        return None
    return found


def _changes(action: Mapping[str, Any] | None) -> bool:
    return action is not None and bool(action["dataChange"])


def _file(folder: Path, version: int, added: Mapping[str, Any]) -> AddedFile | None:
    path, stats = added["path"], added.get("stats")
    if added.get("deletionVector") or ":" in path or path.startswith("/") or not stats:
        return None
    rows = json.loads(stats).get("numRecords")
    if rows is None:
        return None
    return AddedFile(path=folder / unquote(path), version=version, rows=int(rows))
