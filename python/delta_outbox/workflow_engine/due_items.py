"""Which open items are due.

The instants at which open items become due are read once in a process, and followed from then on
in the event log. So nothing is asked before one has come; then it is asked of a read view which of
the items are open still.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.arrow import is_one_of
from delta_outbox.core.instants import LAST_INSTANT
from delta_outbox.core.literals import instant_literal, listed, text_literal
from delta_outbox.delta.files.event_files import VERSION
from delta_outbox.delta.frames import frame_of
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.lifecycle.claims import OPEN_UNTIL, open_until
from delta_outbox.lifecycle.states import OPEN_STATES
from delta_outbox.projection.projection import Projection
from delta_outbox.runtime.session import end_own_session, own_session
from delta_outbox.store.completions import KIND as COMPLETE
from delta_outbox.store.completions import completions_select
from delta_outbox.store.extensions import KIND as EXTEND
from delta_outbox.workflow_engine.derivation.item_events import DueItem, DueMark
from delta_outbox.workflow_engine.task_reader import TaskReader, commands_since, holders, literals
from delta_outbox.workflow_engine.write_range import MOST_NEWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_outbox.store.store import Store

MOST_HELD: Final = 100_000  # items whose instants are kept in memory; those that are due first
MOST_READ: Final = 100_000  # events whose types are read at once
_ITEMS: Final = "outbox_due_items"
_OPEN: Final = (
    *("event_id", "arrival", "destination", "lifecycle", "ordering_key", "attempts"),
    *("publish_attempts", "crashes", "suspect", "claim_id", "created_at", *OPEN_UNTIL),
)

Waiting = tuple[datetime, str, int]  # when an item is due, its identifier, its arrival


class DueItems:
    """The items of one outbox that become due.

    Args:
        outbox: whose.
        tasks: reads tasks.
    """

    def __init__(self, outbox: Store, *, tasks: TaskReader) -> None:
        self._outbox = outbox
        self._tasks = tasks
        self._reader = LogReader(outbox.spark)
        # Of its own: read views are temporary views, and a relay has its own beside these.
        self._session: SparkSession | None = None
        self._projection: Projection | None = None
        self._types = frozenset[str]()
        self._waiting: list[Waiting] = []
        self._at: int | None = None  # version of the event log up to which they are known
        self._end: DueMark | None = None  # how far they are known; None: all of them

    def after(
        self, mark: DueMark, written: DueMark, *, now: datetime, types: Collection[str], seen: int
    ) -> tuple[DueMark, Sequence[DueItem]]:
        """Return how far items can be told to be due now, and those up to there that are open.

        Args:
            mark: how far they were told, or found to be over.
            written: how far they were by the last plan; another process may have gone no further.
            now: the instant up to which they are told.
            types: event types of the items that become due at all.
            seen: version of the event log up to which all is known that was planned.
        """
        goal = max(DueMark(at=now), mark, key=lambda one: one.key)
        if not types:
            return goal, ()
        if self._end is not None and self._end.key <= mark.key:
            self._at = None  # others have gone further than memory reaches
        del self._waiting[: self._place_of(written)]
        self._follow(seen, frozenset(types), written)
        if self._end is not None and self._end.key <= goal.key:
            goal = self._end
        found = self._waiting[self._place_of(mark) : self._place_of(goal)]
        if len(found) > MOST_NEWS:
            found = found[:MOST_NEWS]
            goal = DueMark(at=found[-1][0], through=found[-1][1])
        return goal, self._open(found)

    def forget(self, ended: Iterable[str]) -> None:
        """Ask no more about items that have ended: most of them do before they are due.

        Args:
            ended: identifiers of tasks, items or not.
        """
        if gone := frozenset(ended):
            self._waiting = [one for one in self._waiting if one[1] not in gone]

    def close(self) -> None:
        """End its sessions."""
        if self._projection is not None and self._session is not None:
            self._projection.close()
            end_own_session(self._session)
            self._projection = self._session = None

    def _place_of(self, mark: DueMark) -> int:
        """Return how many of those that wait a mark passes."""
        return bisect_right(self._waiting, mark.key, key=lambda one: (one[0], False, one[1]))

    def _follow(self, version: int, types: frozenset[str], written: DueMark) -> None:
        """Learn which items became due later than a mark, up to a version of the event log."""
        at, self._at = self._at, None
        found: Sequence[tuple[str, int]] | None = None
        if at is not None and types <= self._types:
            found = () if version <= at else self._added(at, version, types)
            version = max(version, at)
        if found is None:
            self._types = types
            self._read(version, written)
        else:
            read = self._tasks.read(found, version=version)
            self._learn((task.due_at, *place) for place, task in read.items() if task.due_at)
        self._at = version

    def _added(
        self, after: int, version: int, types: Collection[str]
    ) -> Sequence[tuple[str, int]] | None:
        """Return the items that commits have added, None if they are too many or cannot be read."""
        columns = ("event_type", "event_id", VERSION)
        events = self._outbox.tables.events
        rows = self._reader.few_added(
            events, after=after, to=version, columns=columns, most=MOST_READ
        )
        if rows is None:
            return None
        its = rows.filter(is_one_of(rows["event_type"], types))
        return [(row["event_id"], row[VERSION]) for row in its.to_pylist()]

    def _learn(self, items: Iterable[Waiting]) -> None:
        for one in items:
            if self._end is None or self._end.passes(one[0], one[1]):
                insort(self._waiting, one)

    def _read(self, version: int, written: DueMark) -> None:
        """Learn of all items that are open, as far as memory goes."""
        found = self._open_behind(written, version)
        is_cut = len(found) > MOST_HELD
        self._waiting = [*found[:MOST_HELD]]
        last = self._waiting[-1] if is_cut else None
        self._end = last and DueMark(at=last[0], through=last[1])

    def _open_behind(self, written: DueMark, version: int) -> Sequence[Waiting]:
        """Return the open items that a mark does not pass, one more than are held at most, and what
        only looks like one: whoever reads the tasks finds that out.
        """
        of_types = f"event_type in ({literals(self._types)})"

        def narrow(frame: DataFrame) -> DataFrame:
            its_open = frame.where(f"{_is_open()} and {of_types}").selectExpr(
                "event_id", "arrival", "cast(created_at as date) as created_date"
            )
            bodies = frame.sparkSession.sql(
                "select event_id, _metadata.row_commit_version as arrival, created_date, "
                "try_cast(get_json_object(cast(payload as string), '$.due_at') as timestamp) "
                f"as due_at from {self._outbox.tables.events} version as of {version} "
                f"where {of_types}"
            )
            found = its_open.join(bodies, ["event_id", "arrival", "created_date"])
            behind = found.where(_is_behind(written)).orderBy("due_at", "event_id")
            return behind.limit(MOST_HELD + 1)

        rows = self._standing(narrow).select(["due_at", "event_id", "arrival"])
        return [*zip(*(column.to_pylist() for column in rows.columns), strict=True)]

    def _open(self, found: Sequence[Waiting]) -> Sequence[DueItem]:
        """Return those items that are open: no answer in the command log ends them either."""
        if not found:
            return ()
        asked = {(task_id, arrival) for _, task_id, arrival in found}
        ids = literals(task_id for task_id, _ in asked)
        rows = self._standing(
            lambda frame: frame.where(f"{_is_open()} and event_id in ({ids})").select(*_OPEN)
        )
        if not rows.num_rows:
            return ()
        since = commands_since(rows["created_at"].to_pylist())
        answered = self._answered(rows.drop(["created_at"]), ids, since)
        its_open = {
            place: row
            for row in rows.to_pylist()
            if (place := (row["event_id"], row["arrival"])) in asked - answered
        }
        names = [one for one, _ in asked]
        held_by = holders(self._spark, self._outbox.statements, names, since=since)
        return [
            DueItem(
                task_id=task_id,
                arrival=arrival,
                expires_at=open_until(its_open[task_id, arrival]),
                assigned_to=held_by.get((task_id, arrival)),
            )
            for _, task_id, arrival in found
            if (task_id, arrival) in its_open
        ]

    def _answered(self, rows: pa.Table, ids: str, since: str) -> set[tuple[str, int]]:
        """Return the open items that answers in the command log will end."""
        spark = self._spark
        frame_of(spark, rows).createOrReplaceTempView(_ITEMS)
        commands = (
            "(select *, _metadata.row_commit_version as _commit_version "
            f"from {self._outbox.tables.commands} "
            f"where kind in ('{COMPLETE}', '{EXTEND}', 'kill') and event_id in ({ids}) "
            f"and requested_date >= {since})"
        )
        found = spark.sql(
            f"select event_id, arrival from ({completions_select(commands, _ITEMS)})"
        ).toArrow()
        return {(row["event_id"], row["arrival"]) for row in found.to_pylist()}

    @property
    def _spark(self) -> SparkSession:
        if self._session is None:
            self._session = own_session(self._outbox.spark)
        return self._session

    def _standing(self, narrow: Any) -> pa.Table:
        outbox = self._outbox
        if self._projection is None:
            self._projection = Projection(
                self._spark, outbox.tables, outbox.statements, clock=outbox.clock
            )
        return self._projection.standing(narrow, planned_by=outbox.worker_id)


def _is_open() -> str:
    return f"state in ({listed(OPEN_STATES)}) and not ambiguous and kill_command_id is null"


def _is_behind(mark: DueMark) -> str:
    """Return the condition, as SQL, that a mark does not pass an item; no task of ours is due later
    than an outbox knows.
    """
    at = instant_literal(mark.at)
    known = f"due_at <= timestamp_micros({LAST_INSTANT})"
    if mark.through is None:
        return f"due_at > {at} and {known}"
    through = text_literal(mark.through)
    return f"(due_at > {at} or due_at = {at} and event_id > {through}) and {known}"
