"""Puts a commit in place by the log store of the JVM, or finds that another one is there."""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.delta.commits import read_commit
from delta_outbox.runtime.log_folder import commit_file

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# Whoever takes a lock gives it back: an interrupt is for the main thread, not for these.
_commits: Final = ThreadPoolExecutor(thread_name_prefix="commits")


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


class LogStore:
    """The log store that a JVM has for a table: whatever of it commits does so through this.

    For local files Delta's store asks whether a commit is there, and then renames its own into
    place. So that of two commits with one version one is there, Delta holds a lock of the table's
    log meanwhile, and so do we (decision 0115).

    Args:
        store: Delta's, in the JVM.
        lock: of the table's log, Delta's as well; a thread of ours is one thread there.
        java: classes of the JVM.
        folder: where Delta keeps the log.
        settings: of Hadoop, in the JVM.
    """

    def __init__(self, store: Any, lock: Any, java: _Java, folder: Path, settings: Any) -> None:
        self._store, self._lock = store, lock
        self._java = java
        self._folder = folder
        self._settings = settings

    @classmethod
    def of(cls, spark: SparkSession, folder: Path) -> LogStore | None:
        """Return the store of a table; None if Delta has another inside than the one we know, or
        threads of ours are not threads there (`PYSPARK_PIN_THREAD=false`).

        Args:
            spark: a classic session.
            folder: where Delta keeps the log.
        """
        from py4j.clientserver import ClientServer
        from py4j.protocol import Py4JError

        session: Any = spark._jsparkSession
        if not isinstance(spark.sparkContext._gateway, ClientServer):
            return None
        try:
            java = _Java.of(spark)
            log = java.delta_log.forTable(session, f"file:{folder.parent}")
            settings = log.newDeltaHadoopConf()
            return cls(log.store(), log.snapshotLock(), java, folder, settings)
        except (Py4JError, TypeError) as error:
            logger.warning("log_store_unknown", extra={"error": type(error).__name__})
            return None

    def put(self, version: int, actions: Sequence[Mapping[str, Any]], *, tag: str) -> bool:
        """Put a commit in place; False if there is one already.

        Args:
            version: of the commit.
            actions: as Delta's protocol has them.
            tag: by which the commit is known again if its answer was lost.

        Raises:
            Py4JJavaError: the store has refused it; it is not there.
        """
        return self.put_text(version, commit_text(actions), tag=tag)

    def put_text(self, version: int, text: str, *, tag: str) -> bool:
        """Put a commit in place; False if there is one already.

        Args:
            version: of the commit.
            text: of `commit_text`.
            tag: by which the commit is known again if its answer was lost.

        Raises:
            Py4JJavaError: the store has refused it; it is not there.
        """
        from py4j.protocol import Py4JJavaError

        # As one line with ends of lines in it: each word to the JVM takes its time.
        lines = self._java.collections.singletonList(text)
        content = self._java.converters.asScala(lines.iterator())
        path = self._java.path(f"file:{commit_file(self._folder, version)}")
        try:
            _commits.submit(self._write, path, content).result()
        except Py4JJavaError:
            # The answer may have been lost; and whoever was first is no error.
            is_there = is_ours(self._folder, version, tag=tag)
            if is_there is None:
                raise
            return is_there
        return True

    def _write(self, path: Any, content: Any) -> None:
        self._lock.lock()
        try:
            self._store.write(path, content, False, self._settings)
        finally:
            self._lock.unlock()


def is_ours(folder: Path, version: int, *, tag: str) -> bool | None:
    """Say whether a commit that is there is the one with a tag; None if there is none.

    Args:
        folder: where Delta keeps the log.
        version: of the commit.
        tag: what it would say of itself.
    """
    if not commit_file(folder, version).exists():
        return None
    there = read_commit(folder, version)
    return there is not None and there.commit.tag == tag


def commit_text(actions: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a commit.

    Args:
        actions: as Delta's protocol has them.
    """
    return "\n".join(json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in actions)
