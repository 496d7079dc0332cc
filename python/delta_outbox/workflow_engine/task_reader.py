"""Reads the events that are tasks from the log, and tells them from those that only look so.

Anybody may append an event of a reserved type. A numbered write has made it if it was appended at
the instant of a plan, after what that plan had seen, and before what the next one had seen. So a
row that somebody appends again, also when the first one has been purged, is none of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import is_one_of, with_nearest
from delta_outbox.core.byte_bounds import told_sizes
from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.core.instants import LAST_INSTANT, instant_of
from delta_outbox.core.literals import text_literal
from delta_outbox.core.reserved_names import DERIVED, RESERVED, reserved
from delta_outbox.core.tables import Tables
from delta_outbox.delta.files.event_files import VERSION
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.write_range import WriteRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.statements import Statements

MOST_COMMITS: Final = 1000  # as many as tasks are claimed at once; for more, the whole log is asked
MOST_READ: Final = 100_000  # rows of such a commit
REMEMBERED: Final = 100_000  # numbered writes whose rows were asked for
BEHIND: Final = timedelta(days=7)  # by so much a clock may be whose commands about items are seen
UNKNOWN_SIZE: Final = 64 * 1024  # bytes of a payload whose row does not tell

TaskPlace = tuple[str, int]  # the id of an event, and its arrival
Appended = tuple[int, datetime | None]  # the arrival of an event, and when it was appended


class TaskReader:
    """Reads tasks.

    Args:
        spark: the session to ask.
        tables: the names of the relations.
        clock: the time.
    """

    def __init__(self, spark: SparkSession, tables: Tables, *, clock: Clock) -> None:
        self._spark = spark
        self._events = tables.events
        self._reader = LogReader(spark)
        self._plans = NumberedWrites(spark, tables, writer=DERIVED, clock=clock)
        self._lock = Lock()
        self._verdicts: dict[Appended, bool] = {}  # whether a numbered write has made such rows

    def read(
        self, places: Collection[TaskPlace], *, version: int | None = None
    ) -> Mapping[TaskPlace, TaskEvent]:
        """Return the tasks among events. Those that are missing are events of other types, or rows
        that no numbered write has made.

        Args:
            places: of the events, the arrival of each as its delivery has it.
            version: of the event log, as of which it is read; its end if left out.
        """
        columns = ("event_type", "created_at", "appended_at", "payload")
        found = self._rows(places, columns, version)
        ours = self.ours((arrival, row["appended_at"]) for (_, arrival), row in found.items())
        return {
            (event_id, arrival): TaskEvent.read(event_id, row["payload"], row["created_at"])
            for (event_id, arrival), row in found.items()
            if (arrival, row["appended_at"]) in ours
        }

    def sizes(self, places: Collection[TaskPlace], *, version: int) -> Mapping[TaskPlace, int]:
        """Return the bytes of those events that have the type of a task.

        Args:
            places: of the events.
            version: of the event log, as of which it is read.
        """
        found = self._rows(places, ("event_type", "payload_bytes"), version)
        sizes = told_sizes(
            pa.array([row["payload_bytes"] for row in found.values()], pa.int64()),
            unknown=UNKNOWN_SIZE,
        )
        return dict(zip(found, sizes.tolist(), strict=True))

    def ours(self, appended: Iterable[Appended]) -> Set[Appended]:
        """Return which rows a numbered write has made.

        Args:
            appended: the arrival of each, and when it was appended.
        """
        asked = set(appended)
        with self._lock:
            if len(self._verdicts) > REMEMBERED:
                self._verdicts.clear()
            self._judge(asked - self._verdicts.keys())
            return {one for one in asked if self._verdicts[one]}

    def know(self, arrival: int, at: datetime) -> None:
        """Note that a numbered write has made rows.

        Args:
            arrival: their commit.
            at: when they were appended.
        """
        with self._lock:
            self._verdicts[arrival, at] = True

    def _judge(self, asked: Set[Appended]) -> None:
        """Find out which rows a numbered write has made. That never changes."""
        instants = {at for _, at in asked if at is not None}
        plans = [*self._plans.planned_at(instants)] if instants else []
        after = [*self._plans.among([one.number + 1 for one in plans])] if plans else []
        self._verdicts |= {one: is_made_by([*plans, *after], *one) for one in asked}

    def _rows(
        self, places: Collection[TaskPlace], columns: Sequence[str], version: int | None
    ) -> Mapping[TaskPlace, Mapping[str, Any]]:
        """Return the events of a reserved type. A numbered write has brought them, so their commits
        hold little else; where maintenance has put these into others, the log is asked.
        """
        wanted: dict[int, set[str]] = {}
        for event_id, arrival in places:
            wanted.setdefault(arrival, set()).add(event_id)
        found: dict[TaskPlace, Mapping[str, Any]] = {}
        unread: set[str] = set()
        for arrival, ids in wanted.items():
            rows = self._commit(arrival, ids, columns) if len(wanted) <= MOST_COMMITS else None
            if rows is None:
                unread |= ids
            else:
                its = with_nearest(rows).to_pylist()
                found |= {(row["event_id"], arrival): row for row in its}
        if unread:
            at = "" if version is None else f"version as of {version} "
            rows = self._spark.sql(
                f"select event_id, {', '.join(columns)}, "
                f"_metadata.row_commit_version as {VERSION} from {self._events} {at}"
                f"where {reserved('event_type')} and event_id in ({literals(unread)})"
            ).toArrow()
            asked = set(places)
            for row in with_nearest(rows).to_pylist():
                place = row["event_id"], row[VERSION]
                if place in asked:
                    found[place] = row
        return found

    def _commit(
        self, arrival: int, ids: Collection[str], columns: Sequence[str]
    ) -> pa.Table | None:
        """Return the events of a reserved type that a commit has added; None if its files are gone,
        or hold too many rows.
        """
        try:
            found = self._reader.added(
                self._events,
                after=arrival - 1,
                to=arrival,
                columns=("event_id", *columns),
                most=MOST_READ,
            )
        except ChangeFeedGone:
            return None
        if found is None:
            return None
        rows = found.rows
        is_asked = is_one_of(rows["event_id"], ids)
        is_task = pc.starts_with(rows["event_type"].cast(pa.string()), RESERVED)
        return rows.filter(pc.and_(is_asked, is_task))


def literals(texts: Iterable[str]) -> str:
    """Return texts as an SQL list.

    Args:
        texts: at least one.
    """
    return ", ".join(text_literal(one) for one in sorted(texts))


def is_made_by(plans: Sequence[NumberedWrite], arrival: int, at: datetime | None) -> bool:
    """Say whether one of some plans has made a row.

    Args:
        plans: those of the instant, and the one after each, as far as they are there.
        arrival: the commit that brought the row.
        at: when it was appended.
    """
    seen = {one.number: WriteRange.of(one).seen for one in plans}
    return any(
        one.planned_at == at
        and one.plan["rows"] > 0
        and seen[one.number] < arrival <= seen.get(one.number + 1, arrival)
        for one in plans
    )


def commands_since(opened: Iterable[datetime]) -> str:
    """Return the first day, as SQL, of which commands about items are asked for. None is given
    before its item is there, but the clock of whoever gives it may be behind, by `BEHIND` at most.

    Args:
        opened: when the items were; none: there is nothing to ask for.
    """
    first = max(min(opened, default=instant_of(LAST_INSTANT)), instant_of(0))
    return f"date'{(first - BEHIND).date()}'"


def holders(
    spark: SparkSession,
    statements: Statements,
    task_ids: Iterable[str],
    *,
    since: str = "date'0001-01-01'",
) -> dict[tuple[str, int], str]:
    """Return who takes care of items, by identifier and arrival.

    Args:
        spark: the session to ask.
        statements: the compiled SQL.
        task_ids: of the items; some.
        since: `commands_since` of the items; all days if left out.
    """
    found = spark.sql(
        "select event_id, arrival, assigned_to "
        f"from ({statements.fill('item_holders', since=since)}) "
        f"where event_id in ({literals(task_ids)}) and assigned_to is not null"
    ).toArrow()
    return {(row["event_id"], row["arrival"]): row["assigned_to"] for row in found.to_pylist()}
