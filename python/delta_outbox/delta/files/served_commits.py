"""Commits through the process that serves a home: others write the files, it puts the commit in
place.

Its JVM is the only one that commits to the tables of the home, so its log store decides which of
two commits with one version is there (decision 0087).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.errors import ServerUnreachable
from delta_outbox.delta.files.log_store import LogStore, commit_text, is_ours
from delta_outbox.runtime.questions import QUESTION_BYTES, ask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.served_home import Served

COMMIT: Final = "commit"
"""The key of a question that is a commit."""
_MOST: Final = QUESTION_BYTES // 4  # bytes of a commit; JSON may write a byte as several


class ServedStore:
    """The log store of a table, in the process that serves its home.

    Args:
        served: that process.
        folder: where Delta keeps the log.
    """

    def __init__(self, served: Served, folder: Path) -> None:
        self._served = served
        self._folder = folder

    def put(self, version: int, actions: Sequence[Mapping[str, Any]], *, tag: str) -> bool | None:
        """Put a commit in place; False if there is one already, None if it is Spark's to make.

        Args:
            version: of the commit.
            actions: as Delta's protocol has them.
            tag: by which the commit is known again if its answer was lost.

        Raises:
            ServerUnreachable: no answer came; nobody knows whether the commit will be there.
        """
        text = commit_text(actions)
        if len(text.encode()) > _MOST:
            return None
        question = {"folder": str(self._folder), "version": version, "text": text, "tag": tag}
        answer = ask(self._served, {COMMIT: question})
        if answer is not None:
            put = answer.get("put")
            return put if isinstance(put, bool) else None
        is_there = is_ours(self._folder, version, tag=tag)
        if is_there is None:
            raise ServerUnreachable(
                address=self._served.address, cause="it gave no answer to a commit, or has ended"
            )
        return is_there


def put_for_others(
    spark: SparkSession, warehouse: Path, question: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Put the commit of another process in place, and say whether it is there.

    Args:
        spark: a classic session of the process that serves the home.
        warehouse: of the home; nothing else is committed to.
        question: as `ServedStore.put` asks.

    Returns:
        `put`: whether it is there; null if it is Spark's to make.
    """
    from py4j.protocol import Py4JJavaError

    folder = Path(question["folder"]).resolve()
    store = LogStore.of(spark, folder) if folder.is_relative_to(warehouse.resolve()) else None
    if store is None:
        return {"put": None}
    try:
        return {"put": store.put_text(question["version"], question["text"], tag=question["tag"])}
    except Py4JJavaError:  # the store has refused it; Spark says why
        return {"put": None}
