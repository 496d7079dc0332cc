"""Reads what operators ask of the instances whose open tasks they end."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from delta_outbox.core.literals import text_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.states import Reason
from delta_outbox.workflow_engine.task_reader import TaskPlace, literals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# twin: macros/workflows/unsure_tasks.sql::unsure_tasks
_UNSURE: Final = (Reason.UNKNOWN, Reason.CRASHED, Reason.LEASE_EXPIRED)


class MoveReader:
    """Reads the commands by which tasks were ended, and whether these may have acted.

    Neither changes any more once such a task has ended, so every writer reads the same.

    Args:
        spark: the session to ask.
        tables: the names of the relations.
    """

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        self._spark = spark
        self._tables = tables

    def arguments(self, asked: Mapping[TaskPlace, str]) -> Mapping[TaskPlace, str]:
        """Return the arguments of the commands that have ended tasks.

        Args:
            asked: by task, the id of its command.
        """
        if not asked:
            return {}
        rows = self._spark.sql(
            "select event_id, arrival, command_id, min_by(arguments, named_struct("
            "'version', _metadata.row_commit_version, 'arguments', arguments)) as arguments "
            f"from {self._tables.commands} where kind = 'kill' "
            f"and command_id in ({literals(set(asked.values()))}) "
            f"and event_id in ({literals(event_id for event_id, _ in asked)}) "
            "group by event_id, arrival, command_id"
        ).toArrow()
        return {
            (row["event_id"], row["arrival"]): row["arguments"]
            for row in rows.to_pylist()
            if asked.get((row["event_id"], row["arrival"])) == row["command_id"]
        }

    def sizes(self, ids: Collection[str]) -> Mapping[str, int]:
        """Return the bytes of the longest arguments that a kill of each task has.

        Args:
            ids: of tasks.
        """
        if not ids:
            return {}
        rows = self._spark.sql(
            "select event_id, max(octet_length(arguments)) as bytes "
            f"from {self._tables.commands} where kind = 'kill' "
            f"and event_id in ({literals(ids)}) group by event_id"
        ).toArrow()
        return {row["event_id"]: row["bytes"] or 0 for row in rows.to_pylist()}

    def may_have_acted(self, asked: Mapping[TaskPlace, datetime]) -> Set[TaskPlace]:
        """Return which tasks have an attempt without a known result on record.

        Args:
            asked: tasks that have ended, and when each was triggered.
        """
        if not asked:
            return set()
        first = min(asked.values()) - timedelta(days=1)  # clocks may differ
        rows = self._spark.sql(
            f"select distinct event_id, arrival from {self._tables.transitions} "
            f"where occurred_date >= date'{first.date().isoformat()}' and lifecycle = 0 "
            f"and destination <> {text_literal(TO_DO)} and reason in ({literals(_UNSURE)}) "
            f"and event_id in ({literals(event_id for event_id, _ in asked)})"
        ).toArrow()
        return asked.keys() & {(row["event_id"], row["arrival"]) for row in rows.to_pylist()}
