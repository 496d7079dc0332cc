"""The deadlines of tasks that are no items, where operators have moved them.

A task expires when its event says, or by the latest extension in the command log. An item expires
when the claim of `todo` ends: see store/extensions.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.store.command_arguments import arguments_of, instant_in
from delta_outbox.store.extensions import KIND, end_after
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.task_reader import TaskPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS: Final = ("kind", "event_id", "arrival", "destination", "arguments")


class Deadlines:
    """The moved deadlines of one outbox. The command log is read once, and followed from then on;
    what is over is forgotten, for the task has expired either way.

    Args:
        spark: the session to ask.
        tables: the names of the relations.
        clock: the time.
    """

    def __init__(self, spark: SparkSession, tables: Tables, *, clock: Clock) -> None:
        self._spark = spark
        self._commands = tables.commands
        self._clock = clock
        self._history = CommitHistory(spark)
        self._reader = LogReader(spark)
        self._lock = Lock()
        self._until: dict[TaskPlace, datetime] = {}
        self._at: int | None = None  # version of the command log up to which they are known

    def in_force(self, tasks: Mapping[TaskPlace, TaskEvent]) -> Mapping[TaskPlace, TaskEvent]:
        """Return tasks with the deadlines that they have by all that was committed before.

        Args:
            tasks: as their events say.
        """
        if not tasks:
            return tasks
        with self._lock:
            self._follow()
            return {place: self._moved(place, task) for place, task in tasks.items()}

    def _moved(self, place: TaskPlace, task: TaskEvent) -> TaskEvent:
        until = self._until.get(place)
        if until is None or task.expires_at is None or until <= task.expires_at:
            return task
        return replace(task, expires_at=until)

    def _follow(self) -> None:
        newest = self._history.newest(self._commands)
        if newest is None or newest.version == self._at:
            return
        now = self._clock.now()
        self._until = {place: until for place, until in self._until.items() if until > now}
        found = None
        if self._at is not None and self._at < newest.version:
            try:
                found = self._reader.added(
                    self._commands, after=self._at, to=newest.version, columns=_COLUMNS
                )
            except ChangeFeedGone:
                found = None
        if found is None:
            self._read(newest.version)
        else:
            self._learn(
                (
                    row["event_id"],
                    row["arrival"],
                    instant_in(arguments_of(row["arguments"]), "until"),
                )
                for row in found.rows.to_pylist()
                if row["kind"] == KIND and row["destination"] != TO_DO
            )
        self._at = newest.version

    def _read(self, version: int) -> None:
        until = end_after("c")
        rows = self._spark.sql(
            f"select c.event_id, c.arrival, max({until}) as ends_at "
            f"from {self._commands} version as of {version} as c "
            f"where c.kind = '{KIND}' and c.destination <> '{TO_DO}' "
            f"and {until} > {instant_literal(self._clock.now())} group by all"
        ).toArrow()
        self._learn(tuple(row.values()) for row in rows.to_pylist())

    def _learn(self, moved: Iterable[tuple[Any, ...]]) -> None:
        for event_id, arrival, until in moved:
            place = event_id, arrival
            known = self._until.get(place)
            if until is not None and (known is None or until > known):
                self._until[place] = until
