"""Writes a row for each delivery that a purge removes, before it is removed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.errors import SequenceTaken
from delta_outbox.core.tables import Tables
from delta_outbox.delta.log_writer import LogWriter
from delta_outbox.operations.maintenance.purge_rules import deliveries_of
from delta_outbox.operations.maintenance.removal import remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS_APP_ID: Final = "outbox/purge-records"


class PurgeRecords:
    """The rows of `outbox_purged`.

    Args:
        spark: a session of its own.
        tables: the names of the relations.
    """

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        self._spark = spark
        self._tables = tables

    def write(self, number: int, given: Mapping[str, Any]) -> bool:
        """Write down every delivery that goes, once; False if a later purge has done so before.

        Args:
            number: of the plan.
            given: the plan.
        """
        frame = self._spark.sql(
            f"select {number}L as number, s.event_id, s.arrival, s.destination, "
            "s.event_type, s.created_at, s.state, s.changed_at as ended_at, "
            "array_compact(array_append(coalesce(c.command_ids, array()), s.kill_command_id)) "
            "as command_ids, "
            f"{given['versions']['events']}L as events_version "
            f"from {self._tables.state} version as of {given['state_version']} as s "
            "left join (select event_id, arrival, destination, "
            "collect_set(command_id) as command_ids "
            f"from {self._tables.transitions} version as of {given['versions']['transitions']} "
            "where command_id is not null group by event_id, arrival, destination) as c "
            "on s.event_id = c.event_id and s.arrival = c.arrival "
            f"and s.destination = c.destination where {deliveries_of(given, 's.')}"
        )
        with contextlib.suppress(SequenceTaken):
            LogWriter(self._spark, app_id=RECORDS_APP_ID).append(self._tables.purged, frame, number)
        return self._has(number)

    def forget(self, number: int) -> None:
        """Remove what was written down for a purge that was given up.

        Args:
            number: of its plan.
        """
        if self._has(number):
            table = self._tables.purged
            remove(
                self._spark,
                table,
                f"delete from {table} where number = {number}",
                tag=str(number),
            )

    def _has(self, number: int) -> bool:
        found = self._spark.sql(f"select 1 from {self._tables.purged} where number = {number}")
        return found.limit(1).first() is not None
