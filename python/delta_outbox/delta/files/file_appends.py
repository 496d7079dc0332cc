"""Appends without a Spark job: Arrow writes the file, Delta's log store commits it.

Delta's own append plans half a dozen queries about the table's log, and Spark's writer takes two
microseconds for each field of a row; together that is most of what a relay costs. Where table and
driver are on this machine, an append is a Parquet file and a commit that names it, as Delta's
protocol has it. The commit is put in place by the log store of the same JVM that all other writers
of the table use, ours or that of the process that serves the home, so that of two at most one is
there; whatever is out of the ordinary is left to Spark (decisions 0026, 0087, 0088).
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.version import __version__
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import ROW_TRACKING
from delta_outbox.delta.delta_errors import is_conflict
from delta_outbox.delta.durability import sync_files
from delta_outbox.delta.files.data_files import DataFile, write_files
from delta_outbox.delta.files.log_state import (
    LogState,
    TableForm,
    followed,
    note_commit,
    state_here,
)
from delta_outbox.delta.files.log_store import LogStore
from delta_outbox.delta.files.row_checks import broken
from delta_outbox.delta.files.served_commits import ServedStore
from delta_outbox.delta.spark_appends import CHECKPOINT, append_by_spark
from delta_outbox.runtime.session import Machine, spark_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 100  # commits of others that may come in between
_PLAIN: Final = re.compile(r"\w[\w-]*", re.ASCII)  # what is the same in a path and in a commit


class FileAppends:
    """Appends to tables of a Spark.

    Args:
        spark: the session that knows where the tables are.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def append(
        self, table: str, rows: pa.Table, *, tag: str, numbered: tuple[str, int] | None = None
    ) -> bool:
        """Append rows, unless it is under a number that was used before.

        Whether they are there then is for the caller to find out, by the tag.

        Args:
            table: the full name of a log.
            rows: all columns that a writer gives.
            tag: what the commit says of itself (`userMetadata`).
            numbered: the writer id under which Delta keeps one version per append, and the version.

        Returns:
            False where the append is Spark's to make; no row was written.
        """
        here = state_here(CommitHistory(self._spark), table)
        if here is None:
            return False
        folder, state = here
        if not _takes(table, state, rows):
            return False
        store = _store_of(self._spark, folder)
        if store is None:
            return False
        append = _Append(
            spark=self._spark,
            table=table,
            folder=folder,
            store=store,
            rows=rows,
            numbered=numbered,
            tag=tag,
        )
        return append.run(state)


@dataclass(frozen=True, kw_only=True)
class _Append:
    """One append.

    Args:
        spark: the session.
        table: the full name of the log.
        folder: where Delta keeps it.
        store: that commits.
        rows: what is appended.
        numbered: the writer and the number of the append, if it has one.
        tag: of the commit.
    """

    spark: SparkSession
    table: str
    folder: Path
    store: LogStore | ServedStore
    rows: pa.Table
    numbered: tuple[str, int] | None
    tag: str

    def run(self, state: LogState | None) -> bool:
        """Append, unless the number was used; False where the append is Spark's to make.

        Args:
            state: of a table that takes the rows.
        """
        from py4j.protocol import Py4JJavaError

        form = state and state.form
        files: list[DataFile] = []
        may_be_named = False  # by a commit: its answer may be lost, with all that it was asked of
        try:
            for _ in range(ATTEMPTS):
                if state is None or not isinstance(form, TableForm) or state.form is not form:
                    return False  # it was altered meanwhile
                if self.numbered and state.numbers.get(self.numbered[0], -1) >= self.numbered[1]:
                    return True
                version = state.version + 1
                if version % form.checkpoint_interval == 0:
                    state = self._checkpointed(state, form)
                    continue
                if not files:
                    table = self.folder.parent
                    for file in write_files(table, self.rows, form):
                        files.append(file)  # noqa: PERF402 - those written before one that fails
                    sync_files(self.spark, table, [file.path for file in files])
                actions, last = self._actions(files, state)
                may_be_named = True
                try:
                    is_done = self.store.put(version, actions, tag=self.tag)
                except Py4JJavaError:  # the answer is there, and it is no
                    may_be_named = False
                    raise
                if is_done is None:
                    may_be_named = False
                    return False
                if is_done:
                    note_commit(
                        self.folder,
                        state,
                        numbered=self.numbered,
                        last_row_id=last,
                    )
                    return True
                may_be_named = False
                state = followed(self.folder, state)
            return False
        finally:
            if not may_be_named:
                for file in files:
                    file.path.unlink(missing_ok=True)

    def _checkpointed(self, state: LogState, form: TableForm) -> LogState | None:
        """Let Spark commit no rows where a checkpoint is due, and return what is known after that;
        None where the rows are Spark's to append as well.

        Spark makes the checkpoint, and removes what is old. It takes a second and goes on if we
        die, so a number that others race for must not be taken by it.
        """
        version = state.version + 1
        if self.numbered is None or form.checkpoint_interval == 1:  # then no later commit is free
            return None
        try:
            append_by_spark(
                self.spark,
                self.table,
                self.rows.slice(0, 0),
                tag=CHECKPOINT,
                numbered=(CHECKPOINT, version),  # without one it would make no commit
            )
        except Exception as error:
            if not is_conflict(error):  # else another writer does the same
                raise
        after = followed(self.folder, state)
        if after is not None and after.version < version:  # it takes the number for a used one
            return None
        return after

    def _actions(
        self, files: Sequence[DataFile], state: LogState
    ) -> tuple[list[Mapping[str, Any]], int]:
        """Return the actions of the next commit, and the last id that it gives to a row."""
        now = time.time_ns() // 1_000_000
        last, version = state.last_row_id, state.version + 1
        assert isinstance(state.form, TableForm)
        actions: list[Mapping[str, Any]] = [
            {
                "commitInfo": {
                    "timestamp": now,
                    "operation": "WRITE",
                    "operationParameters": {"mode": "Append", "partitionBy": "[]"},
                    "readVersion": state.version,
                    "isolationLevel": "Serializable",
                    "isBlindAppend": True,
                    "operationMetrics": {
                        "numFiles": str(len(files)),
                        "numOutputRows": str(self.rows.num_rows),
                        "numOutputBytes": str(sum(file.size for file in files)),
                    },
                    "userMetadata": self.tag,
                    "engineInfo": f"delta-outbox/{__version__}",
                    "txnId": str(uuid.uuid4()),
                }
            },
        ]
        if self.numbered:
            app_id, number = self.numbered
            actions.append({"txn": {"appId": app_id, "version": number, "lastUpdated": now}})
        for file in files:
            numbered = {"baseRowId": last + 1, "defaultRowCommitVersion": version}
            actions.append(
                {
                    "add": {
                        "path": file.name,
                        "partitionValues": file.partition,
                        "size": file.size,
                        "modificationTime": now,
                        "dataChange": True,
                        "stats": file.statistics,
                        **(numbered if state.form.has_row_ids else {}),
                    }
                }
            )
            last += file.rows
        if not state.form.has_row_ids or not files:
            return actions, state.last_row_id
        told = json.dumps(
            {"domainName": ROW_TRACKING, "rowIdHighWaterMark": last}, separators=(",", ":")
        )
        domain = {"domain": ROW_TRACKING, "configuration": told, "removed": False}
        return [*actions, {"domainMetadata": domain}], last


def _store_of(spark: SparkSession, folder: Path) -> LogStore | ServedStore | None:
    """Return what commits to a table for a session; None if only Spark does."""
    here = spark_here(spark)
    if not isinstance(here, Machine):  # its logs are ours to read, so it runs in this process
        return LogStore.of(spark, folder)
    served = here.served
    return ServedStore(served, folder) if served and served.questions_port else None


def _takes(table: str, state: LogState, rows: pa.Table) -> bool:
    """Say whether rows are such as the table takes; what is wrong with them is Spark's to say."""
    form = state.form
    if isinstance(form, str):
        logger.info("table_left_to_spark", extra={"table": table, "not_known": form})
        return False
    given = {field.name: field.type for field in rows.schema}
    if given != {field.name: field.type for field in form.columns}:
        return False
    if any(rows[field.name].null_count for field in form.columns if not field.nullable):
        return False
    folders = (rows[name] for name in form.partitioned_by if given.get(name) == pa.string())
    if not all(_PLAIN.fullmatch(value) for one in folders for value in one.unique().to_pylist()):
        return False
    return broken(rows, form.conditions) is None
