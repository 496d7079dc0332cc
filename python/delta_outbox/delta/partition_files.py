"""Whether partitions of a table have files, as the log of the table says it, without a query."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.runtime.log_folder import actions_of, last_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def have_files(
    spark: SparkSession, table: str, *, version: int, column: str, values: Collection[str]
) -> bool | None:
    """Say whether partitions of a table have files; None where only a query can tell.

    Args:
        spark: the session to read with.
        table: its full name.
        version: of the table.
        column: the one that it is partitioned by.
        values: of the partitions.
    """
    folder = CommitHistory(spark).folder(table)
    return None if folder is None else _have_files(folder, version, column, values)


def _have_files(folder: Path, version: int, column: str, values: Collection[str]) -> bool | None:
    since = last_checkpoint(folder)
    if since > version:
        return None
    files: set[str] = set()
    try:
        changes = [] if since == 0 else [(set[str](), _checkpointed(folder, since))]
        numbers = range(since + 1 if since else 0, version + 1)
        changes.extend(_changes(folder, number) for number in numbers)
        for removed, added in changes:
            files -= removed
            files |= {path for path, partition in added.items() if partition[column] in values}
    except (FileNotFoundError, KeyError):
        # A checkpoint of another form, or what is old was removed; or the column has another name
        # in the files.
        return None
    return bool(files)


_Partitions = dict[str, dict[str, str | None]]  # by the path of a file, its values


def _changes(folder: Path, version: int) -> tuple[set[str], _Partitions]:
    """Return the files that a commit removes and adds; one of both stays, with other rows."""
    actions = [*actions_of(folder, version)]
    added = [action["add"] for action in actions if "add" in action]
    return (
        {action["remove"]["path"] for action in actions if "remove" in action},
        {add["path"]: add["partitionValues"] for add in added},
    )


def _checkpointed(folder: Path, version: int) -> _Partitions:
    """Return the files that a table had at its last checkpoint."""
    file = folder / f"{version:020}.checkpoint.parquet"
    with pq.ParquetFile(file) as rows:
        adds = rows.read(columns=["add.path", "add.partitionValues"])["add"].to_pylist()
    return {add["path"]: dict(add["partitionValues"]) for add in adds if add and add["path"]}
