"""Appends rows to a log: as a file where that is ours to write, else through Spark.

Under a number of a writer an append is committed once, and believed only when its commit is found
again: Delta commits one append per (appId, version) and raises for those that raced; a version that
was used before is skipped without a word.
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
from delta_outbox.delta.spark_appends import append_by_spark
from delta_outbox.delta.storage_errors import writing_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 20  # appends that may be lost to other writers before the caller is told
COMMITS_LOOKED_AT: Final = 200  # of other writers and of maintenance, since our own


class LogWriter:
    """Appends to logs under the numbers of one writer.

    Args:
        spark: the session to write with.
        app_id: the writer id under which Delta keeps one version per append.
        committed: the failpoint after each commit.
    """

    def __init__(self, spark: SparkSession, *, app_id: str, committed: Point | None = None) -> None:
        self._spark = spark
        self._app_id = app_id
        self._committed = committed

    def append(
        self, log: str, rows: pa.Table | DataFrame, number: int, *, tag: str | None = None
    ) -> int | None:
        """Append rows under a number of the writer, and return the version of the log's commit.

        Before it, all that they may have been decided by is on the disk; after it, they are.

        Args:
            log: its full name.
            rows: all columns that a writer gives.
            number: the version that Delta keeps.
            tag: what the commit says of itself (`userMetadata`); one that no other has if left out.

        Returns:
            None if the number was used before: nothing was written.

        Raises:
            SequenceTaken: somebody else committed the number at the same time; nothing was written.
            DiskFull: there is no room; nothing was written.
            NotWritable: the right to write is missing; nothing was written.
            NotSynced: the disk did not take what was read, or these rows.
        """
        schema, _, _ = log.rpartition(".")
        sync_outbox(self._spark, schema)
        tag = tag or f"{self._app_id}/{number}/{uuid.uuid4().hex}"
        try:
            append_rows(self._spark, log, rows, tag=tag, numbered=(self._app_id, number))
        except Exception as error:
            if is_conflict(error):
                raise SequenceTaken(writer=self._app_id, number=number) from error
            # The commit may have happened although its answer was lost.
            version = _version_of(self._spark, log, tag)
            if version is None:
                raise
            logger.warning("append_answer_lost", extra={"writer": self._app_id, "number": number})
        else:
            if self._committed is not None:
                reach(self._committed)
            version = _version_of(self._spark, log, tag)
        sync_outbox(self._spark, schema)
        return version


def append_rows(
    spark: SparkSession,
    log: str,
    rows: pa.Table | DataFrame,
    *,
    tag: str,
    numbered: tuple[str, int] | None = None,
) -> None:
    """Append rows: write a file, or let Spark do it. No other place makes that choice.

    Args:
        spark: the session to write with.
        log: its full name.
        rows: all columns that a writer gives.
        tag: what the commit says of itself (`userMetadata`).
        numbered: the writer id and the number under which Delta takes it once.

    Raises:
        DiskFull: there is no room; nothing was written.
        NotWritable: the right to write is missing; nothing was written.
    """
    with writing_to(log):
        if isinstance(rows, pa.Table) and FileAppends(spark).append(
            log, rows, tag=tag, numbered=numbered
        ):
            return
        append_by_spark(spark, log, rows, tag=tag, numbered=numbered)


def _version_of(spark: SparkSession, table: str, tag: str) -> int | None:
    """Return the latest commit that carries a tag, if there is one; its rows are all or none.

    Reading the last commit costs much less than reading rows.
    """
    for commit in CommitHistory(spark).back(table, COMMITS_LOOKED_AT):
        if commit.tag == tag:
            return commit.version
    return None
