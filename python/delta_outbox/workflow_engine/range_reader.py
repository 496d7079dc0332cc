"""Reads from the logs what a numbered write of derived events is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import is_one_of, sizes_of, with_nearest
from delta_outbox.core.byte_bounds import told_sizes
from delta_outbox.core.instants import instant_of
from delta_outbox.core.literals import text_literal
from delta_outbox.core.tables import Tables
from delta_outbox.delta.files.event_files import VERSION
from delta_outbox.delta.log_reader import LogReader, changes
from delta_outbox.lifecycle.states import OUTCOME_REASONS, Reason, State
from delta_outbox.runtime.statements import Statements
from delta_outbox.workflow_engine.derivation.events import StartEvent, TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Ended
from delta_outbox.workflow_engine.derivation.item_events import DueItem
from delta_outbox.workflow_engine.known_rows import KnownRows
from delta_outbox.workflow_engine.move_reader import MoveReader
from delta_outbox.workflow_engine.task_reader import UNKNOWN_SIZE, TaskReader, literals
from delta_outbox.workflow_engine.write_range import (
    MOST_BYTES,
    MOST_NEWS,
    News,
    Span,
    WriteRange,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_READ: Final = 100_000  # rows whose types, or reasons, are read at once
MOST_MEASURED: Final = 64  # endings whose data, 1 MiB at most of each, is measured at once
_TOLD_BY: Final = ("to_state", "reason", "lifecycle")
_OF_STARTS: Final = (
    *("event_id", "event_type", "payload", "created_at", "appended_at"),
    *("ordering_key", "partition_key", VERSION),
)
_EARLIEST: Final = instant_of(0)  # start events count from then on

Row = Mapping[str, Any]


class RangeReader:
    """Reads start events and endings of tasks.

    Events that start nothing, and endings of deliveries that are no tasks, cost a look at a few
    narrow columns.

    Args:
        spark: the session to ask.
        tables: the names of the relations.
        statements: the compiled SQL.
        tasks: reads tasks.
        known: which ids tasks may have.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        statements: Statements,
        *,
        tasks: TaskReader,
        known: KnownRows,
    ) -> None:
        self._spark = spark
        self._tables = tables
        self._tasks = tasks
        self._known = known
        self._moves = MoveReader(spark, tables)
        self._reader = LogReader(spark)
        self._order = statements.fill("order_of_contents", content="c")

    def new_starts(self, span: Span, types: Collection[str]) -> tuple[Span, Sequence[News]]:
        """Return the beginning of a span that one write may have, and the start events in it.

        Args:
            span: of the event log.
            types: of events that start a workflow.
        """
        if span.after >= span.to or not types:
            return span, ()

        def starts(rows: pa.Table) -> pa.ChunkedArray:
            return is_one_of(rows["event_type"], types)

        log, columns = self._tables.events, ("event_id", "payload_bytes")
        found = self._new(log, span, ("event_type",), starts, columns, most=MOST_READ)
        if found is None:  # the next commit has more rows than are held at once
            span = replace(span, to=span.after + 1)
            rows = self._spark.sql(
                f"select event_id, payload_bytes, {VERSION} from {self._starts_of(span, types)} "
                f"order by event_id limit {MOST_NEWS + 1}"
            ).toArrow()
        else:
            span, rows = found
        if not rows.num_rows:
            return span, ()
        rows = _in_order(rows, span).slice(0, MOST_NEWS + 1)  # one more than a write may have
        sizes = told_sizes(rows["payload_bytes"], unknown=UNKNOWN_SIZE)
        return _cut(span, _news(rows.append_column("size", pa.array(sizes)).to_pylist()))

    def new_endings(self, span: Span, seen: int) -> tuple[Span, Sequence[News]]:
        """Return the beginning of a span that one write may have, and the endings of tasks in it.

        Args:
            span: of the transition log.
            seen: version of the event log by which tasks are known.
        """
        if span.after >= span.to:
            return span, ()
        log, columns = self._tables.transitions, ("event_id", "arrival")
        found = self._new(log, span, _TOLD_BY, is_ending, columns, most=MOST_READ)
        if found is None:
            whole = replace(span, to=span.after + 1)
            found = self._new(log, whole, _TOLD_BY, is_ending, columns, most=None)
            assert found is not None, "without a limit all is read"
        span, rows = found
        if not rows.num_rows:
            return span, ()
        endings = self._of_tasks(_in_order(rows, span).to_pylist(), seen)
        span, few = _cut(span, _news([{**one, "size": 0} for one in endings]))
        return _cut(span, [*self._measured(endings[: len(few)], seen)])

    def starts(self, write: WriteRange, types: Collection[str]) -> Sequence[StartEvent]:
        """Return the start events of a numbered write that are the first of their ids, as far as
        ids are known.

        Each counts from when it was appended, as far as the log says so: at the earliest from 1970,
        at the latest from when the write was planned, whatever somebody has inserted.

        Args:
            write: its range.
            types: of events that start a workflow.
        """
        span = write.events
        if span.after >= span.last or not types or self._has_none(span, types):
            return ()
        found = self._spark.sql(
            f"select {', '.join(_OF_STARTS)} from (select c.*, row_number() over "
            f"(partition by event_id order by {VERSION}, {self._order}) as copy "
            f"from (select * from {self._starts_of(span, types)}) as c) where copy = 1"
        ).toArrow()
        rows = with_nearest(found).to_pylist()
        first = self._known.first_arrivals(
            {row["event_id"]: row["created_at"] for row in rows}, write
        )
        return [
            StartEvent(
                event_id=row["event_id"],
                event_type=row["event_type"],
                payload=row["payload"],
                since=min(max(row["appended_at"] or row["created_at"], _EARLIEST), write.at),
                arrival=row[VERSION],
                ordering_key=row["ordering_key"],
                partition_key=row["partition_key"],
            )
            for row in rows
            if row[VERSION] <= first.get(row["event_id"], row[VERSION])
        ]

    def ended(self, write: WriteRange) -> Sequence[Ended]:
        """Return the tasks that have ended in a numbered write.

        A task is never replayed: what has become of it in a later lifecycle counts for nothing.

        Args:
            write: its range.
        """
        span = write.transitions
        if span.after >= span.last:
            return ()
        rows = self._all(
            self._tables.transitions,
            (span.after, span.last),
            *("event_id", "arrival", "epoch", "lane", "sequence", *_TOLD_BY),
            *("outcome", "outcome_data", "occurred_at", "command_id"),
        )
        found = _in_order(rows.filter(is_ending(rows)), span).to_pylist()
        endings = self._of_tasks(found, write.seen)
        tasks = self._tasks.read({_place(row) for row in endings}, version=write.seen)
        killed = {
            _place(row): row["command_id"]
            for row in endings
            if row["reason"] == Reason.OPERATOR and row["command_id"] and _place(row) in tasks
        }
        commands = self._moves.arguments(killed)
        ended = {
            _place(row): Ended.read(
                tasks[_place(row)],
                row["reason"],
                row["outcome"],
                row["outcome_data"],
                row["occurred_at"],
                (row["epoch"], row["lane"], row["sequence"]),
                command=commands.get(_place(row)),
            )
            for row in endings
            if _place(row) in tasks
        }
        acted = self._moves.may_have_acted(
            {place: one.task.created_at for place, one in ended.items() if one.move is not None}
        )
        return [
            replace(one, may_have_acted=True) if place in acted else one
            for place, one in ended.items()
        ]

    def due(self, write: WriteRange) -> Mapping[DueItem, TaskEvent]:
        """Return the items that a numbered write tells to be due.

        Args:
            write: its range.
        """
        if not write.due:
            return {}
        places = {one: (one.task_id, one.arrival) for one in write.due}
        read = self._tasks.read(places.values(), version=write.seen)
        return {one: read[place] for one, place in places.items() if place in read}

    def _new(
        self,
        log: str,
        span: Span,
        told_by: Sequence[str],
        is_news: Callable[[pa.Table], pa.ChunkedArray],
        columns: Sequence[str],
        *,
        most: int | None,
    ) -> tuple[Span, pa.Table] | None:
        """Return the part of a span that was read, and the news in it; None if the first commit has
        more rows than may be read.
        """
        found = self._reader.added(log, after=span.after, to=span.to, columns=told_by, most=most)
        if found is None:
            return None
        news = found.rows.filter(is_news(found.rows))
        if news.num_rows:
            rows = self._all(log, (span.after, found.to), *told_by, *columns)
            news = rows.filter(is_news(rows))
        return replace(span, to=found.to), news

    def _all(self, log: str, between: tuple[int, int], *columns: str) -> pa.Table:
        """Return all rows that were added between two versions, with the commit of each."""
        after, to = between
        found = self._reader.added(log, after=after, to=to, columns=(*columns, VERSION))
        assert found is not None, "without a limit all is read"
        return found.rows

    def _of_tasks(self, endings: Sequence[Row], seen: int) -> Sequence[Row]:
        """Return the endings that may be of tasks. Outcomes have only tasks; an operator kills what
        they like, so of these it is asked whether their ids are known as those of tasks.
        """
        killed = [one["event_id"] for one in endings if one["reason"] == Reason.OPERATOR]
        tasks = self._known.may_be_tasks(killed, seen)
        return [
            one for one in endings if one["reason"] != Reason.OPERATOR or one["event_id"] in tasks
        ]

    def _measured(self, endings: Sequence[Row], seen: int) -> Iterator[News]:
        """Yield endings of tasks with the bytes of what follows, until one write has enough."""
        of_tasks = self._tasks.sizes({_place(one) for one in endings}, version=seen)
        killed = {one["event_id"] for one in endings if one["reason"] == Reason.OPERATOR}
        of_moves = self._moves.sizes(killed)
        total, count = 0, 0
        for part in _parts([one for one in endings if _place(one) in of_tasks]):
            between = part[0][VERSION] - 1, part[-1][VERSION]
            rows = self._all(self._tables.transitions, between, "event_id", "outcome_data")
            names = zip(rows[VERSION].to_pylist(), rows["event_id"].to_pylist(), strict=True)
            data = dict(zip(names, _bytes(rows["outcome_data"]), strict=True))
            for one in part:
                version, event_id = one[VERSION], one["event_id"]
                size = of_tasks[_place(one)] + data[version, event_id]
                size += of_moves.get(event_id, 0)
                total, count = total + size, count + 1
                yield News(version=version, event_id=event_id, size=size)
            if total > MOST_BYTES and count > 1:
                return

    def _has_none(self, span: Span, types: Collection[str]) -> bool:
        """Say whether a span has no start events; False: it may have. Most spans have none, and
        their files tell that in a hundredth of the time that the change feed takes.
        """
        log, columns = self._tables.events, ("event_type",)
        rows = self._reader.few_added(
            log, after=span.after, to=span.last, columns=columns, most=MOST_READ
        )
        return rows is not None and not pc.any(is_one_of(rows["event_type"], types)).as_py()

    def _starts_of(self, span: Span, types: Collection[str]) -> str:
        """Return the start events of a span, to select from."""
        condition = f"event_type in ({literals(types)})"
        if span.behind is not None:
            first = span.after + 1
            condition += f" and ({VERSION} > {first} or event_id > {text_literal(span.behind)})"
        if span.through is not None:
            condition += (
                f" and ({VERSION} <= {span.to} or event_id <= {text_literal(span.through)})"
            )
        return f"{changes(self._tables.events, after=span.after, to=span.last)} and {condition}"


def is_ending(rows: pa.Table) -> pa.ChunkedArray:
    """Say of each transition whether it ends a task, if it is one's: with an outcome, or by an
    operator. What comes in a later lifecycle does not.

    Args:
        rows: to_state, reason and lifecycle.
    """
    reason = rows["reason"].cast(pa.string())
    has_outcome = pc.and_(
        pc.equal(rows["to_state"], str(State.PUBLISHED)), is_one_of(rows["reason"], OUTCOME_REASONS)
    )
    is_over = pc.or_(has_outcome, pc.equal(reason, str(Reason.OPERATOR)))
    return pc.and_(is_over, pc.equal(rows["lifecycle"], 0))


def _place(row: Row) -> tuple[str, int]:
    return row["event_id"], row["arrival"]


def _in_order(rows: pa.Table, span: Span) -> pa.Table:
    """Return the rows of the commits of a span that belong to it (`Span.holds`), in the order of
    its news. A commit may have a million, of which a write has few.
    """
    versions, ids = rows[VERSION].cast(pa.int64()), rows["event_id"].cast(pa.string())
    rows = rows.drop_columns([VERSION, "event_id"])
    rows = rows.append_column(VERSION, versions).append_column("event_id", ids)
    for version, is_ours, name in (
        (span.after + 1, pc.greater, span.behind),
        (span.to + 1, pc.less_equal, span.through),
    ):
        if name is not None:
            is_whole = pc.not_equal(rows[VERSION], version)
            rows = rows.filter(pc.or_(is_whole, is_ours(rows["event_id"], name)))
    return rows.sort_by([(VERSION, "ascending"), ("event_id", "ascending")])


def _news(rows: Sequence[Row]) -> Sequence[News]:
    return [News(version=one[VERSION], event_id=one["event_id"], size=one["size"]) for one in rows]


def _cut(span: Span, news: Sequence[News]) -> tuple[Span, Sequence[News]]:
    """Return the beginning of a span that one write may have, and its news."""
    cut = span.cut_to(news)
    return cut, [one for one in news if cut.holds(one.version, one.event_id)]


def _parts(endings: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield commits whose endings are few together, or one commit."""
    part: list[Row] = []
    for _, commit in groupby(endings, key=lambda one: one[VERSION]):
        more = [*commit]
        if part and len(part) + len(more) > MOST_MEASURED:
            yield part
            part = []
        part += more
    if part:
        yield part


def _bytes(column: pa.ChunkedArray) -> Sequence[int]:
    return [size for chunk in column.chunks for size in sizes_of(chunk).tolist()]
