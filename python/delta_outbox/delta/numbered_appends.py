"""Appends under a number: each number once, and believed only when its commit is found again.

Delta commits one append per (appId, version) and raises for those that raced; a version that was
used before is skipped without a word.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_outbox.core.errors import SequenceTaken
from delta_outbox.core.failpoints import Point, reach
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.delta_errors import is_conflict
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.files.file_appends import FileAppends
from delta_outbox.delta.frames import frame_of
from delta_outbox.delta.storage_errors import writing_to
from delta_outbox.runtime.query_mode import interpreted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 20  # appends that may be lost to other writers before the caller is told
COMMITS_LOOKED_AT: Final = 200  # of other writers and of maintenance, since our own


def append_numbered(
    spark: SparkSession,
    table: str,
    rows: pa.Table,
    *,
    app_id: str,
    number: int,
    committed: Point,
) -> int | None:
    """Append rows under a number of a writer, and return the version of the table's commit.

    Before it, all that they may have been decided by is on the disk; after it, they are.

    Args:
        spark: the session to write with.
        table: the log.
        rows: all columns that a writer gives, in order.
        app_id: the writer id under which Delta keeps one version per append.
        number: the version.
        committed: the failpoint after the commit.

    Returns:
        None if the number was used before: nothing was written.

    Raises:
        SequenceTaken: somebody else committed the number at the same time; nothing was written.
        DiskFull: there is no room; nothing was written.
        NotWritable: the right to write is missing; nothing was written.
        NotSynced: the disk did not take what was read, or these rows.
    """
    schema, _, _ = table.rpartition(".")
    sync_outbox(spark, schema)
    tag = f"{app_id}/{number}/{uuid.uuid4().hex}"
    try:
        with writing_to(table):
            if not FileAppends(spark).append(table, rows, app_id=app_id, number=number, tag=tag):
                _append_by_spark(spark, table, rows, app_id=app_id, number=number, tag=tag)
    except Exception as error:
        if is_conflict(error):
            raise SequenceTaken(writer=app_id, number=number) from error
        # The commit may have happened although its answer was lost.
        version = _version_of(spark, table, tag)
        if version is None:
            raise
        logger.warning("append_answer_lost", extra={"writer": app_id, "number": number})
    else:
        reach(committed)
        version = _version_of(spark, table, tag)
    sync_outbox(spark, schema)
    return version


def _append_by_spark(
    spark: SparkSession, table: str, rows: pa.Table, *, app_id: str, number: int, tag: str
) -> None:
    with interpreted(spark, rows.num_rows):
        (
            frame_of(spark, rows)
            .coalesce(1)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", app_id)
            .option("txnVersion", number)
            .option("userMetadata", tag)
            .saveAsTable(table)
        )


def _version_of(spark: SparkSession, table: str, tag: str) -> int | None:
    """Return the latest commit that carries a tag, if there is one; its rows are all or none.

    Reading the last commit costs much less than reading rows.
    """
    for commit in CommitHistory(spark).back(table, COMMITS_LOOKED_AT):
        if commit.tag == tag:
            return commit.version
    return None
