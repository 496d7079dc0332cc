"""Numbered appends without a Spark job: Arrow writes the file, Delta's log store commits it.

Delta's own append plans half a dozen queries about the table's log, and Spark's writer takes two
microseconds for each field of a row; together that is most of what a relay costs. Where table and
driver are on this machine, an append is a Parquet file and a commit that names it, as Delta's
protocol has it. The commit is put in place by the log store of the same JVM that all other writers
of the table use, so that of two at most one is there; whatever is out of the ordinary is left to
Spark (decision 0026).
"""

from __future__ import annotations

import json
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.version import __version__
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.durability import sync_files
from delta_outbox.delta.files.data_files import DataFile, write_files
from delta_outbox.delta.files.log_state import (
    ROW_TRACKING,
    LogState,
    TableForm,
    committed,
    followed,
    state_of,
)
from delta_outbox.delta.files.log_store import LogStore
from delta_outbox.delta.files.row_checks import broken
from delta_outbox.runtime.session import is_remote

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ATTEMPTS: Final = 100  # commits of others that may come in between


class FileAppends:
    """Appends to tables of a Spark.

    Args:
        spark: the session that knows where the tables are.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def append(self, table: str, rows: pa.Table, *, app_id: str, number: int, tag: str) -> bool:
        """Append rows under a number of a writer, unless the number was used before.

        Whether they are there is for the caller to find out, by the tag.

        Args:
            table: the full name of a log.
            rows: all columns that a writer gives.
            app_id: the writer id under which Delta keeps one version per append.
            number: the version.
            tag: what the commit says of itself (`userMetadata`).

        Returns:
            False where the append is Spark's to make; nothing was written.
        """
        if is_remote(self._spark):
            return False
        history = CommitHistory(self._spark)
        folder, newest = history.folder(table), history.newest(table)
        if folder is None or newest is None:
            return False
        known = _known.setdefault(self._spark.sparkContext, {})
        state = known.get(folder)
        state = followed(folder, state) if state is not None else None
        if state is None or state.form is None:
            state = state_of(folder, newest.version)
        if state is None or state.form is None or not _fits(rows, state.form):
            return False
        store = LogStore.of(self._spark, folder)
        if store is None:
            return False
        append = _Append(self._spark, folder, store, rows, app_id=app_id, number=number, tag=tag)
        done = append.run(state)
        if done is not None:
            known[folder] = done
        return done is not None


_known: weakref.WeakKeyDictionary[SparkContext, dict[Path, LogState]] = weakref.WeakKeyDictionary()


class _Append:
    """One append.

    Args:
        spark: the session.
        folder: where Delta keeps the log.
        store: that commits.
        rows: what is appended.
        app_id: the numbered writer.
        number: of the append.
        tag: of the commit.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        store: LogStore,
        rows: pa.Table,
        *,
        app_id: str,
        number: int,
        tag: str,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._store = store
        self._rows = rows
        self._app_id = app_id
        self._number = number
        self._tag = tag

    def run(self, state: LogState | None) -> LogState | None:
        """Append, and return what is known then; None where the append is Spark's to make."""
        from py4j.protocol import Py4JJavaError

        files: list[DataFile] = []
        may_be_named = False  # by a commit: its answer may be lost, with all that it was asked of
        try:
            for _ in range(ATTEMPTS):
                if state is None or state.form is None:
                    return None
                if state.numbers.get(self._app_id, -1) >= self._number:
                    return state
                version = state.version + 1
                if version % state.form.checkpoint_interval == 0:
                    return None  # Spark makes the checkpoint, and removes what is old
                if not files:
                    table = self._folder.parent
                    files = list(write_files(table, self._rows, state.form))
                    sync_files(self._spark, table, [file.path for file in files])
                actions, last = self._actions(files, state)
                may_be_named = True
                try:
                    is_done = self._store.put(version, actions, tag=self._tag)
                except Py4JJavaError:  # the answer is there, and it is no
                    may_be_named = False
                    raise
                if is_done:
                    return committed(
                        self._folder,
                        state,
                        app_id=self._app_id,
                        number=self._number,
                        last_row_id=last,
                    )
                may_be_named = False
                state = followed(self._folder, state)
            return None
        finally:
            if not may_be_named:
                for file in files:
                    file.path.unlink(missing_ok=True)

    def _actions(
        self, files: Sequence[DataFile], state: LogState
    ) -> tuple[list[Mapping[str, Any]], int]:
        """Return the actions of the next commit, and the last id that it gives to a row."""
        now = time.time_ns() // 1_000_000
        last, version = state.last_row_id, state.version + 1
        assert state.form is not None
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
                        "numOutputRows": str(self._rows.num_rows),
                        "numOutputBytes": str(sum(file.size for file in files)),
                    },
                    "userMetadata": self._tag,
                    "engineInfo": f"delta-outbox/{__version__}",
                    "txnId": str(uuid.uuid4()),
                }
            },
            {"txn": {"appId": self._app_id, "version": self._number, "lastUpdated": now}},
        ]
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


def _fits(rows: pa.Table, form: TableForm) -> bool:
    """Say whether rows are such as the table takes; what is wrong with them is Spark's to say."""
    given = {field.name: field.type for field in rows.schema}
    if given != {field.name: field.type for field in form.columns}:
        return False
    if any(rows[field.name].null_count for field in form.columns if not field.nullable):
        return False
    return broken(rows, form.conditions) is None
