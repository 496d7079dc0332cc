"""What the event log has, or ever had, of instances and identifiers of tasks.

Ids of other events are held against new ones for some days (decision 0004). Those of tasks, and the
keys of instances, are known for good, purged ones too. To look them up in the log would read its
history for each of them, so a number is kept in memory for each, and the log is asked only where a
number says that one may be known. What was purged is asked for as of now: what a purge removes is
in the event log up to then, and it removes nothing of an instance that goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import days_of, with_nearest
from delta_outbox.core.horizon import Range, day_ranges, days_condition, first_day
from delta_outbox.core.reserved_names import RESERVED, reserved
from delta_outbox.core.tables import Tables
from delta_outbox.delta.files.event_files import VERSION
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.producer.id_index import (
    MOST_NEW,
    IdIndex,
    IdNumbers,
    number_in_sql,
    number_of,
)
from delta_outbox.runtime.statements import Statements
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Derived, KnownInstance
from delta_outbox.workflow_engine.task_reader import TaskReader, literals
from delta_outbox.workflow_engine.write_range import WriteRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSTANT: Final = pa.timestamp("us", tz="UTC")
_OF_KEY: Final = "/tasks"  # tells the key of tasks from the same text as the id of the last event
_OURS: Final = f"{reserved('event_type')} or {reserved('event_id')}"


class KnownRows:
    """Knows the instances, the tasks and the ids of one outbox.

    Args:
        spark: the session to ask.
        tables: the names of the relations.
        statements: the compiled SQL.
        tasks: tells tasks from what only looks so.
    """

    def __init__(
        self, spark: SparkSession, tables: Tables, statements: Statements, *, tasks: TaskReader
    ) -> None:
        self._spark = spark
        self._tables = tables
        self._tasks = tasks
        self._horizon_days = int(statements.texts["identity_horizon_days"])
        self._reader = LogReader(spark)
        self._id_index = IdIndex(spark, tables.events)
        self._numbers: IdNumbers | None = None
        self._at = 0  # version of the event log up to which they are known

    def first_arrivals(
        self, created: Mapping[str, datetime], write: WriteRange
    ) -> Mapping[str, int]:
        """Return the commits that brought the first rows of ids, within the horizon.

        Args:
            created: ids, and when the event of each was created.
            write: the range of the numbered write.
        """
        if not created:
            return {}
        condition = days_condition(self._days(created, write))
        rows = self._spark.sql(
            "select event_id, min(_metadata.row_commit_version) as arrival "
            f"from {self._tables.events} version as of {write.seen} "
            f"where ({condition}) and event_id in ({literals(created)}) group by event_id"
        ).toArrow()
        return dict(zip(rows["event_id"].to_pylist(), rows["arrival"].to_pylist(), strict=True))

    def _days(self, created: Mapping[str, datetime], write: WriteRange) -> Sequence[Range]:
        """Return the days on which the ids may be known."""
        instants = pa.chunked_array([pa.array([*created.values(), write.at], _INSTANT)])
        days = days_of(instants).cast(pa.int32()).to_pylist()
        return day_ranges(days, back=self._horizon_days)

    def _taken(self, created: Mapping[str, datetime], write: WriteRange) -> Set[str]:
        """Return which ids some event has, within the horizon; as a rule the index says: none."""
        if not created:
            return set()
        days = self._days(created, write)
        ids = pa.chunked_array([pa.array(created.keys(), pa.string())])
        # Ids are known from one day on: of days that lie far apart the log itself is asked.
        if len(days) == 1 and not self._id_index.may_hold(
            ids, since=first_day(days), version=write.seen
        ):
            return set()
        return set(self.first_arrivals(created, write))

    def known(
        self, derived: Derived, write: WriteRange, again: Set[str]
    ) -> tuple[Mapping[str, KnownInstance], Set[str]]:
        """Return what the log has of the instances of rows that follow, and of those stranded, and
        which ids of these rows.

        A task was written when all earlier rows of its instance were there, and its ending is read
        once. So where the log cannot have more, the instance has the rows up to the task that has
        ended, and is open: what was purged and has its key is not its end. Else the log is asked.

        Args:
            derived: what follows.
            write: the range of the numbered write.
            again: keys of instances of which an ending may be read for the second time.
        """
        known: dict[str, KnownInstance] = {}

        def learn(key: str, found: KnownInstance) -> None:
            if key not in known or known[key].rows < found.rows:
                known[key] = found

        for one in derived.rows:
            if one.start is None:
                begun_by = one.task.origin.event_id
                learn(one.task.key, KnownInstance(begun_by=begun_by, rows=one.task.number))
        ids = {one.row.event_id: one.row.created_at for one in derived.rows}
        taken = self._taken(ids, write)
        asked = [
            one
            for one in derived.rows
            if self._may_hold(
                [one.row.event_id, *(_names_of(one.task.key) if one.start else ())], write.seen
            )
        ]
        stranded = {one.key for one in derived.stranded}
        keys = {one.task.key for one in asked} | stranded | again
        if keys:
            ids_asked = keys | {one.row.event_id for one in asked}
            its_open = (known.keys() | stranded) - again
            found, there = self._look_up(keys, ids_asked, its_open, write)
            for key, instance in found.items():
                learn(key, instance)
            taken |= there & ids.keys()
        return known, taken

    def may_be_tasks(self, ids: Collection[str], seen: int) -> Set[str]:
        """Return which ids tasks may have, or may have had; of the others none has.

        Args:
            ids: of events.
            seen: version of the event log by which it is known.
        """
        if not ids or not self._may_hold(ids, seen):
            return set()
        return {one for one in ids if self._may_hold([one], seen)}

    def _look_up(
        self, keys: Set[str], ids: Set[str], its_open: Set[str], write: WriteRange
    ) -> tuple[Mapping[str, KnownInstance], Set[str]]:
        """Return which instances, and which ids of tasks and instances, the log has or had.

        Args:
            keys: of the instances.
            ids: of tasks and instances.
            its_open: keys of instances that have not ended.
            write: the range of the numbered write.
        """
        of_keys, of_ids = literals(keys), literals(ids)
        rows = self._spark.sql(
            "select event_id, event_type, ordering_key, created_at, appended_at, payload, "
            f"_metadata.row_commit_version as {VERSION} "
            f"from {self._tables.events} version as of {write.seen} "
            f"where ({reserved('event_type')} and (event_id in ({of_ids}) "
            f"or ordering_key in ({of_keys}))) or event_id in ({of_keys})"
        ).toArrow()
        gone = self._spark.sql(
            f"select event_id from {self._tables.purged} where event_id in ({of_ids}) and ({_OURS})"
        ).toArrow()
        found = with_nearest(rows).to_pylist()
        ours = self._tasks.ours((row[VERSION], row["appended_at"]) for row in found)
        there = ids & {*gone["event_id"].to_pylist(), *rows["event_id"].to_pylist()}
        known: dict[str, KnownInstance] = {}
        ended = (keys - its_open) & {*gone["event_id"].to_pylist()}
        for row in found:
            if (row[VERSION], row["appended_at"]) not in ours:
                continue
            if not row["event_type"].startswith(RESERVED):
                ended |= {row["event_id"]}
                continue
            task = TaskEvent.read(row["event_id"], row["payload"], row["created_at"])
            if task.key in keys and (task.key not in known or known[task.key].rows < task.number):
                known[task.key] = KnownInstance(begun_by=task.origin.event_id, rows=task.number)
        for key in ended:
            one = known.get(key, KnownInstance(begun_by=None, rows=0))
            known[key] = KnownInstance(begun_by=one.begun_by, rows=one.rows + 1)
        return known, there

    def _may_hold(self, texts: Iterable[str], version: int) -> bool:
        """Say whether the log has, or had, one of these ids or keys; False is certain. Numbers of
        what came later do no harm.
        """
        if self._numbers is None or not self._follow(version):
            self._numbers = self._read(version)
            self._at = version
        return self._numbers.hold_any(np.array([number_of(one) for one in texts], np.int64))

    def _follow(self, version: int) -> bool:
        """Read what was appended since, and say whether that was possible."""
        if version <= self._at:
            return True
        rows = self._reader.few_added(
            self._tables.events,
            after=self._at,
            to=version,
            columns=("event_id", "event_type", "ordering_key"),
            most=MOST_NEW,
        )
        if rows is None or self._numbers is None:
            return False
        tasks = rows.filter(pc.starts_with(rows["event_type"].cast(pa.string()), RESERVED))
        ends = rows.filter(pc.starts_with(rows["event_id"].cast(pa.string()), RESERVED))
        texts = [
            *tasks["event_id"].to_pylist(),
            *(key + _OF_KEY for key in tasks["ordering_key"].drop_null().to_pylist()),
            *ends["event_id"].to_pylist(),
        ]
        self._numbers.add(np.fromiter(map(number_of, texts), np.int64))
        self._at = version
        return True

    def _read(self, version: int) -> IdNumbers:
        """Learn all that the log has and had of tasks and instances."""
        of_key = f"concat(ordering_key, '{_OF_KEY}')"
        log = f"{self._tables.events} version as of {version}"
        rows = self._spark.sql(
            f"select {number_in_sql('event_id')} as number from {log} where {_OURS} "
            f"union all select distinct {number_in_sql(of_key)} from {log} "
            f"where {reserved('event_type')} and ordering_key is not null "
            f"union all select {number_in_sql('event_id')} "
            f"from {self._tables.purged} where {_OURS}"
        ).toArrow()
        return IdNumbers(rows["number"].to_numpy())


def _names_of(key: str) -> tuple[str, str]:
    """Return by what an instance is known: the id of its last event, and the key of its tasks."""
    return key, key + _OF_KEY
