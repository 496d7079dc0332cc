"""What the log of a table says of its files, without a query: whether partitions have some,
whether a text may be in one, and which rows are in a few of them.

A query for any of that takes a quarter of a second, however little there is. All answers are those
of one version of the table. None says that only a query can tell: the log is not on this machine,
or has a form that is not read here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import added_file
from delta_outbox.delta.files.event_files import UnreadableFile, read_files
from delta_outbox.delta.files.log_state import state_here
from delta_outbox.runtime.log_folder import actions_of, last_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

MOST_FILES: Final = 20_000  # of a checkpoint; to read more takes longer than a query
MOST_READ: Final = 100  # files whose rows are read; for more the same holds

_Files = dict[str, Mapping[str, Any]]  # by their path, as the `add` of Delta's protocol has them


def have_files(
    spark: SparkSession, table: str, *, version: int | None, column: str, values: Collection[str]
) -> bool | None:
    """Say whether partitions of a table have files.

    Args:
        spark: the session to read with.
        table: its full name.
        version: of the table; None: the newest.
        column: the one that it is partitioned by.
        values: of the partitions.
    """
    files = _files_of(spark, table, version)
    if files is None:
        return None
    try:
        return any(add["partitionValues"][column] in values for add in files.values())
    except KeyError:  # the column has another name in the files
        return None


def few_rows(
    spark: SparkSession,
    table: str,
    *,
    version: int,
    column: str,
    values: Collection[str],
    most: int,
    number: tuple[str, int] | None = None,
) -> pa.Table | None:
    """Return the rows of some partitions of a table; None also if they are more than so many, or
    lie in many files.

    Args:
        spark: the session to read with.
        table: its full name.
        version: of the table.
        column: the one that it is partitioned by.
        values: of the partitions.
        most: rows.
        number: a column of 64-bit numbers and the value that is looked for in it; files that cannot
            have it are left out. Any if left out.

    Returns:
        All columns of the table, in no order; rows without that number, too.
    """
    here = state_here(CommitHistory(spark), table)
    if here is None or not here[1].is_readable:
        return None
    folder, form = here[0], here[1].form
    if isinstance(form, str) or column not in form.partitioned_by:
        return None
    files = _files_of(spark, table, version)
    if files is None:
        return None
    try:
        meant = [add for add in files.values() if add["partitionValues"][column] in values]
    except KeyError:  # the table had other partitions then
        return None
    if number is not None:
        meant = [add for add in meant if _may_have_number(add, *number)]
    if len(meant) > MOST_READ:
        return None
    known = [file for add in meant if (file := added_file(folder, version, add)) is not None]
    if len(known) < len(meant) or sum(file.rows for file in known) > most:
        return None
    if not known:
        return form.columns.empty_table()
    try:
        return read_files(known, form.columns.names).cast(form.columns)
    except (UnreadableFile, pa.ArrowException) as error:  # removed since, or of another form
        logger.info("table_file_unreadable", extra={"file": str(error)})
        return None


def may_hold_between(
    spark: SparkSession, table: str, *, version: int | None, column: str, first: str, last: str
) -> bool | None:
    """Say whether a file of a table may hold a text between two others; False is certain.

    Args:
        spark: the session to read with.
        table: its full name.
        version: of the table; None: the newest.
        column: of texts.
        first: the least text that is meant.
        last: the greatest.
    """
    files = _files_of(spark, table, version)
    if files is None:
        return None
    return any(_may_hold(add, column, first, last) for add in files.values())


def _may_have_number(add: Mapping[str, Any], column: str, number: int) -> bool:
    least, greatest = _ends(add, column)
    return least is None or greatest is None or least <= number <= greatest


def _may_hold(add: Mapping[str, Any], column: str, first: str, last: str) -> bool:
    """Say so of a file, by its statistics: Delta may shorten long texts, the least one to one that
    is less, the greatest to one that is greater.
    """
    least, greatest = _ends(add, column)
    if least is None or greatest is None:
        return True
    return bool(first.encode() <= greatest.encode() and least.encode() <= last.encode())


def _ends(add: Mapping[str, Any], column: str) -> tuple[Any, Any]:
    stats = json.loads(add.get("stats") or "{}")
    least, greatest = (stats.get(name, {}).get(column) for name in ("minValues", "maxValues"))
    return least, greatest


def _files_of(spark: SparkSession, table: str, version: int | None) -> _Files | None:
    """Return the files of a version of a table."""
    history = CommitHistory(spark)
    folder = history.folder(table)
    if folder is None:
        return None
    newest = history.newest(table) if version is None else None
    to = newest.version if newest is not None else version
    since = last_checkpoint(folder)
    if to is None or since > to:
        return None
    files: _Files = {}
    try:
        if since > 0:
            files.update(_checkpointed(folder, since))
        for number in range(since + 1 if since else 0, to + 1):
            _change(files, folder, number)
    except (FileNotFoundError, _NotRead, pa.ArrowException):  # removed, or torn
        return None
    return files


class _NotRead(Exception):
    """A checkpoint has another form, or is too large."""


def _change(files: _Files, folder: Path, version: int) -> None:
    """Take the files away that a commit removes, and add those that it adds; one of both stays,
    with other rows.
    """
    actions = [*actions_of(folder, version)]
    for action in actions:
        if "remove" in action:
            files.pop(action["remove"]["path"], None)
    files.update((action["add"]["path"], action["add"]) for action in actions if "add" in action)


def _checkpointed(folder: Path, version: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the files that a table had at its last checkpoint."""
    columns = ["add.path", "add.partitionValues", "add.stats", "add.deletionVector"]
    with pq.ParquetFile(folder / f"{version:020}.checkpoint.parquet") as rows:
        if {"sidecar", "checkpointMetadata"} & {*rows.schema_arrow.names}:
            raise _NotRead
        adds = pc.drop_null(rows.read(columns=columns)["add"])  # others are removals
    if len(adds) > MOST_FILES:
        raise _NotRead
    for add in adds.to_pylist():
        yield add["path"], {**add, "partitionValues": dict(add["partitionValues"])}
