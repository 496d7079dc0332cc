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
import logging
import time
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox import __version__
from delta_outbox.commit_history import CommitHistory, commit_file
from delta_outbox.log_state import ROW_TRACKING, LogState, TableForm, committed, followed, state_of
from delta_outbox.row_checks import broken
from delta_outbox.session import is_remote

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 100  # commits of others that may come in between
_LONGEST: Final = 64  # characters of a text that is kept as the least or greatest of a file
# Columns of which nearly each row has another value: a dictionary of them is thrown away again.
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - written with a Z below
_UNIQUE: Final = frozenset({"event_id", "receipt", "plan"})


@dataclass(frozen=True, kw_only=True)
class _Written:
    """A data file that no commit names yet.

    Args:
        path: where it is.
        name: relative to the table, as a commit names it.
        partition: its partition values.
        rows: how many it has.
        statistics: as Delta keeps them, JSON.
    """

    path: Path
    name: str
    partition: Mapping[str, str]
    rows: int
    statistics: str


class FileAppends:
    """Appends to tables of a Spark.

    Args:
        spark: the session that knows where the tables are.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Read nothing yet."""
        self._spark = spark

    def append(self, table: str, rows: pa.Table, *, app_id: str, number: int, mark: str) -> bool:
        """Append rows under a number of a writer, unless the number was used before.

        Whether they are there is for the caller to find out, by the mark.

        Args:
            table: the full name of a log.
            rows: all columns that a writer gives.
            app_id: the writer id under which Delta keeps one version per append.
            number: the version.
            mark: what the commit says of itself (`userMetadata`).

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
        store = _Store.of(self._spark, folder)
        if store is None:
            return False
        done = _Append(folder, store, rows, app_id=app_id, number=number, mark=mark).run(state)
        if done is not None:
            known[folder] = done
        return done is not None


_known: weakref.WeakKeyDictionary[SparkContext, dict[Path, LogState]] = weakref.WeakKeyDictionary()


class _Append:
    """One append.

    Args:
        folder: where Delta keeps the log.
        store: that commits.
        rows: what is appended.
        app_id: the numbered writer.
        number: of the append.
        mark: of the commit.
    """

    def __init__(
        self, folder: Path, store: _Store, rows: pa.Table, *, app_id: str, number: int, mark: str
    ) -> None:
        self._folder = folder
        self._store = store
        self._rows = rows
        self._app_id = app_id
        self._number = number
        self._mark = mark

    def run(self, state: LogState | None) -> LogState | None:
        """Append, and return what is known then; None where the append is Spark's to make."""
        from py4j.protocol import Py4JJavaError

        files: list[_Written] = []
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
                    files = list(_written(self._folder.parent, self._rows, state.form))
                actions, last = self._actions(files, state)
                may_be_named = True
                try:
                    is_done = self._store.put(version, actions, mark=self._mark)
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
        self, files: Sequence[_Written], state: LogState
    ) -> tuple[list[Mapping[str, Any]], int]:
        """Return the actions of the next commit, and the last id that it gives to a row."""
        now = time.time_ns() // 1_000_000
        last, version = state.last_row_id, state.version + 1
        assert state.form is not None
        sizes = {file.path: file.path.stat().st_size for file in files}
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
                        "numOutputBytes": str(sum(sizes.values())),
                    },
                    "userMetadata": self._mark,
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
                        "size": sizes[file.path],
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


@dataclass(frozen=True, kw_only=True)
class _Java:
    """Classes of a JVM, found once: to ask for one by name takes a word per package.

    Args:
        delta_log: of Delta.
        path: of Hadoop.
        collections: of Java.
        converters: of Scala.
    """

    delta_log: Any
    path: Any
    collections: Any
    converters: Any

    @classmethod
    def of(cls, spark: SparkSession) -> _Java:
        """Return those of the JVM of a session."""
        context = spark.sparkContext
        found = _java.get(context)
        if found is None:
            jvm: Any = spark._jvm
            found = _java[context] = cls(
                delta_log=jvm.org.apache.spark.sql.delta.DeltaLog,
                path=jvm.org.apache.hadoop.fs.Path,
                collections=jvm.java.util.Collections,
                converters=jvm.scala.jdk.javaapi.CollectionConverters,
            )
        return found


_java: weakref.WeakKeyDictionary[SparkContext, _Java] = weakref.WeakKeyDictionary()


class _Store:
    """The log store that a JVM has for a table: whatever of it commits does so through this.

    Args:
        store: Delta's, in the JVM.
        java: classes of the JVM.
        folder: where Delta keeps the log.
        settings: of Hadoop, in the JVM.
    """

    def __init__(self, store: Any, java: _Java, folder: Path, settings: Any) -> None:
        self._store = store
        self._java = java
        self._folder = folder
        self._settings = settings

    @classmethod
    def of(cls, spark: SparkSession, folder: Path) -> _Store | None:
        """Return the store of a table; None if Delta has another inside than the one we know."""
        from py4j.protocol import Py4JError

        session: Any = spark._jsparkSession
        try:
            java = _Java.of(spark)
            log = java.delta_log.forTable(session, f"file:{folder.parent}")
            return cls(log.store(), java, folder, log.newDeltaHadoopConf())
        except (Py4JError, TypeError) as error:
            logger.warning("log_store_unknown", extra={"error": type(error).__name__})
            return None

    def put(self, version: int, actions: Sequence[Mapping[str, Any]], *, mark: str) -> bool:
        """Put a commit in place; False if there is one already."""
        from py4j.protocol import Py4JJavaError

        lines = [json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in actions]
        # As one line with ends of lines in it: each word to the JVM takes its time.
        text = self._java.collections.singletonList("\n".join(lines))
        content = self._java.converters.asScala(text.iterator())
        file = commit_file(self._folder, version)
        path = self._java.path(f"file:{file}")
        try:
            self._store.write(path, content, False, self._settings)
        except Py4JJavaError:
            # The answer may have been lost; and whoever was first is no error.
            if not file.exists():
                raise
            with file.open(encoding="utf-8") as found:
                return any(
                    json.loads(line).get("commitInfo", {}).get("userMetadata") == mark
                    for line in found
                )
        return True


def _fits(rows: pa.Table, form: TableForm) -> bool:
    """Say whether rows are such as the table takes; what is wrong with them is Spark's to say."""
    given = {field.name: field.type for field in rows.schema}
    if given != {field.name: field.type for field in form.columns}:
        return False
    if any(rows[field.name].null_count for field in form.columns if not field.nullable):
        return False
    return broken(rows, form.conditions) is None


def _written(table: Path, rows: pa.Table, form: TableForm) -> Iterator[_Written]:
    """Write rows, a file for each partition that they are of."""
    dated = rows
    for name, instant in form.dates.items():
        # Without a zone: Arrow knows the calendar by itself, and the instants are UTC.
        day = rows[instant].cast(pa.timestamp("us")).cast(pa.date32())
        dated = dated.append_column(name, day)
    names = list(form.partitioned_by)
    kept = [field.name for field in form.columns if field.name not in names]
    partitions = dated.select(names).group_by(names).aggregate([]).to_pylist()
    for values in partitions:
        part = dated
        for name, value in values.items() if len(partitions) > 1 else ():
            part = part.filter(pc.equal(part[name], pa.scalar(value, part[name].type)))
        partition = {name: str(value) for name, value in values.items()}
        # The partition columns as well, as Delta writes them: whoever reads a file finds them.
        yield _write(table, part.select([*kept, *names]), form, partition)


def _write(table: Path, rows: pa.Table, form: TableForm, partition: Mapping[str, str]) -> _Written:
    folders = "/".join(f"{name}={value}" for name, value in partition.items())
    name = f"{folders}/part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    path = table / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table(rows.columns, names=rows.column_names)  # none required, as Spark writes them
    try:
        pq.write_table(
            rows,
            path,
            compression="snappy",
            use_dictionary=[name for name in rows.column_names if name not in _UNIQUE],
            store_schema=False,
        )
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return _Written(
        path=path,
        name=name,
        partition=partition,
        rows=rows.num_rows,
        statistics=json.dumps(
            _statistics(rows, form.statistics - partition.keys()),
            separators=(",", ":"),
            ensure_ascii=False,
        ),
    )


def _statistics(rows: pa.Table, names: Collection[str]) -> Mapping[str, Any]:
    """Return what Delta keeps of a file: the number of rows, and where the columns lie."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for field in rows.schema:
        column = rows[field.name]
        if field.name not in names:
            continue
        nulls[field.name] = column.null_count
        if column.null_count == rows.num_rows:
            continue
        found = pc.min_max(column)
        low: Any
        high: Any
        if pa.types.is_timestamp(field.type):
            # Delta keeps milliseconds.
            low, high = (
                _instant(found["min"].value // 1000),
                _instant(-(-found["max"].value // 1000)),
            )
        else:
            low, high = found["min"].as_py(), found["max"].as_py()
        if isinstance(low, str) and max(len(low), len(high)) > _LONGEST:
            continue
        least[field.name], greatest[field.name] = low, high
    return {
        "numRecords": rows.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def _instant(milliseconds: int) -> str:
    at = _EPOCH + timedelta(milliseconds=milliseconds)
    return f"{at.isoformat(timespec='milliseconds')}Z"
