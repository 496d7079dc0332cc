"""Writes the events that follow start events and endings of tasks, each exactly once.

    derived = DerivedEvents(outbox)
    written = derived.step()                between the polls of a relay
    tasks = derived.tasks.read(places)      by id and arrival; what is missing is no task of ours

It is a numbered writer (decisions 0077, 0108). Which versions of the logs it reads, by which plan
of `workflows` instances begin, and as of which version of the event log it asks what is known,
stands in a plan of `derived_events`; the rows are appended to the event log under the number of
that plan. Whoever finds a plan reads the same versions and makes the same rows, and Delta takes
them once. Start events that begin nothing, and instances that do not go on, are kept in the plan,
as are the items that are told to be due (decision 0094).
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.errors import LogRewound, NoOutboxHere, SequenceTaken
from delta_outbox.core.failpoints import reach
from delta_outbox.core.instants import micros
from delta_outbox.core.reserved_names import DERIVED, WORKFLOWS
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.log_writer import COMMITS_LOOKED_AT, LogWriter
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.store.epochs import BEGUN
from delta_outbox.store.epochs import WRITER as LANES
from delta_outbox.workflow_engine.derivation.events import NewEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Derived, Ended, admit, derive
from delta_outbox.workflow_engine.derivation.item_events import (
    DueMark,
    due_by,
    told_of_due,
    told_of_new,
)
from delta_outbox.workflow_engine.due_items import DueItems
from delta_outbox.workflow_engine.item_links import Links
from delta_outbox.workflow_engine.known_rows import KnownRows
from delta_outbox.workflow_engine.range_reader import RangeReader
from delta_outbox.workflow_engine.task_reader import TaskReader
from delta_outbox.workflow_engine.workflow_plans import NewestWrites, WorkflowPlans
from delta_outbox.workflow_engine.write_range import Span, WriteRange

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

APP_ID: Final = f"outbox/{DERIVED}"
MOST_UNWRITTEN: Final = 200  # commits without news, before a plan says that they are read
LONGEST_UNWRITTEN: Final = timedelta(days=1)  # likewise
MOST_EPOCHS: Final = 1000  # of which it is known when they began

_INSTANT: Final = pa.timestamp("us", tz="UTC")
_ROWS: Final = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_type", pa.string()),
        ("payload", pa.binary()),
        ("created_at", _INSTANT),
        ("ordering_key", pa.string()),
        ("partition_key", pa.string()),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("metadata", pa.map_(pa.string(), pa.string())),
        ("available_at", _INSTANT),
        ("ordinal", pa.int64()),
        ("appended_at", _INSTANT),
    ]
)


@dataclass(frozen=True, kw_only=True)
class WrittenEvents:
    """What came of a step.

    Args:
        events: that it has written.
        ignored: start events that begin nothing.
        stranded: instances that do not go on.
        more: whether there is more on record than was read.
    """

    events: int = 0
    ignored: int = 0
    stranded: int = 0
    more: bool = False


class DerivedEvents:
    """Writes what follows in the workflows of one outbox. Any number of processes may do so.

    Args:
        outbox: whose.
    """

    def __init__(self, outbox: Store) -> None:
        spark, tables, statements = outbox.spark, outbox.tables, outbox.statements
        self._tables = tables
        self._clock = outbox.clock
        self._planned_by = outbox.worker_id
        self._history = CommitHistory(spark)
        self.tasks = TaskReader(spark, tables, clock=outbox.clock)
        self._known = KnownRows(spark, tables, statements, tasks=self.tasks)
        self._reader = RangeReader(spark, tables, statements, tasks=self.tasks, known=self._known)
        self._writer = LogWriter(spark, app_id=APP_ID)
        self._newest = NewestWrites(spark, tables, writers=(DERIVED, WORKFLOWS), clock=outbox.clock)
        self._plans = self._newest.writes[DERIVED]
        self._versions = WorkflowPlans(self._newest.writes[WORKFLOWS])
        self._due = DueItems(outbox, tasks=self.tasks)
        secret = outbox.settings.todo.link_secret
        self._link = None if secret is None else partial(Links(secret).link, until=None)
        self._lanes = NumberedWrites(spark, tables, writer=LANES, clock=outbox.clock)
        self._begun = {0: datetime.min.replace(tzinfo=UTC)}  # when each epoch began
        self._done = 0  # number of the plan whose rows are known to be there
        # What was read after the last plan without finding anything.
        self._passed: WriteRange | None = None

    def close(self) -> None:
        """End its sessions."""
        self._due.close()

    def step(self) -> WrittenEvents:
        """Make one numbered write of what has been committed and not been followed yet.

        Without news it looks which version each of three logs has; as long as no workflows are in
        force, of one. That is a file each, or a query where Spark's driver is elsewhere.

        Returns:
            What was written, which may begin another workflow, and whether there is more to read.

        Raises:
            ChangeFeedGone: maintenance has removed what is not read yet.
            LogRewound: a number counts as used, and its rows are not there.
        """
        workflows = self._newest.of(WORKFLOWS)
        if workflows is None:
            return WrittenEvents()
        last = self._newest.of(DERIVED)
        if last is not None and last.number > self._done:
            written = self._finish(last)
            if written.events:
                return written
        found = self._next(last, workflows)
        if found is None:
            return WrittenEvents()
        read, is_all, has_news = found
        derived = self._derive(read) if has_news else Derived()
        if derived == Derived() and read.has_told_all and not is_far(last, read):
            self._passed = read
            return WrittenEvents(more=not is_all)
        plan = self._plans.append_after(
            last, new_plan(read, derived), planned_by=self._planned_by, at=read.at
        )
        if plan is None:  # another writer was faster, and writes what follows
            self._newest.forget(DERIVED)
            return WrittenEvents(more=True)
        self._newest.know(DERIVED, plan)
        return replace(self._write(plan, derived), more=not is_all)

    def _next(
        self, last: NumberedWrite | None, workflows: NumberedWrite
    ) -> tuple[WriteRange, bool, bool] | None:
        """Return what is read next, whether that is all there is, and whether anything is new in
        it; None if there is nothing to read.
        """
        # In this order each transition finds its event.
        latest = self._head(self._tables.transitions), self._head(self._tables.events)
        # After the events: those that came after a build are judged by what it has put into force.
        was, workflows = workflows, self._newest.of(WORKFLOWS) or workflows
        before = self._passed
        if before is None:
            before = self._beginning(workflows) if last is None else WriteRange.of(last)
        transitions = before.transitions.next(latest[0])
        events = before.events.next(latest[1])
        seen = self._head(self._tables.events)
        now = self._clock.now()
        by = due_by(now)
        told, due = self._due.after(
            before.told,
            before.told if last is None else WriteRange.of(last).told,
            now=by,
            types=self._versions.becoming_due(workflows.number),
            seen=seen,
        )
        is_read = transitions.after >= transitions.to and events.after >= events.to
        if is_read and not due and told.has_passed(by):
            # Items that are due and over are not asked about again.
            self._passed = replace(before, told=told, workflows=was.number, former=())
            return None
        former = tuple(range(before.in_force_since, workflows.number))
        types = self._versions.starting(workflows.number, *former)
        part, starts = self._reader.new_starts(events, types)
        ended_part, endings = self._reader.new_endings(transitions, seen)
        read = WriteRange(
            events=part,
            transitions=ended_part,
            workflows=workflows.number,
            seen=seen,
            at=now,
            told=told,
            due=tuple(due),
            former=former,
            all_transitions=ended_part == transitions,
        )
        is_all = part == events and read.all_transitions and read.has_told_all
        return read, is_all, bool(starts or endings or due)

    def _beginning(self, workflows: NumberedWrite) -> WriteRange:
        """Return a range that ends where workflows were put into force first: what came before
        starts nothing, and there are no tasks yet.
        """
        first = self._newest.writes[WORKFLOWS].numbered(1) or workflows
        since = micros(first.planned_at) // 1000
        version = 0
        for commit in self._history.back(self._tables.events, 1000, None):
            version = commit.version
            if commit.at < since:
                break
        else:
            version = max(0, version - 1)
        transitions = self._head(self._tables.transitions)
        return WriteRange(
            events=Span(after=version, to=version),
            transitions=Span(after=transitions, to=transitions),
            workflows=first.number,
            seen=version,
            at=first.planned_at,
            told=DueMark(at=first.planned_at),
        )

    def _derive(self, read: WriteRange) -> Derived:
        """Return what is to be written; whoever reads the same range finds the same."""
        starts = self._reader.starts(read, self._versions.starting(read.workflows, *read.former))
        ended = self._reader.ended(read)
        self._due.forget(one.task.task_id for one in ended)
        due = self._reader.due(read)
        of_tasks = {plan for one in ended for plan in one.plans}
        of_tasks |= {one.plan for one in due.values()}
        plans = self._versions.of({read.workflows, *read.former} | of_tasks)
        derived = derive(starts, ended, plans, read.workflows, former=read.former)
        admitted = admit(derived, *self._known.known(derived, read, self._again(ended)))
        opened = [one.opens for one in admitted.rows if one.opens is not None]
        told = (
            *told_of_new(opened, plans, read.told, read.at, self._link),
            *told_of_due(due.items(), plans, read.at, self._link),
        )
        return replace(admitted, told=told)

    def _again(self, ended: Sequence[Ended]) -> Set[str]:
        """Return the keys of instances of which an ending may be read for the second time: an
        earlier one may have been followed, and then been lost with an epoch (LOG_REWOUND).
        """
        if any(one.position[0] not in self._begun for one in ended):
            for plan in self._lanes.last(MOST_EPOCHS):
                if plan.plan["step"] == BEGUN:
                    self._begun[plan.plan["epoch"]] = plan.planned_at
        return {
            one.task.key
            for one in ended
            if self._begun.get(one.position[0], one.at) > one.task.created_at
        }

    def _finish(self, plan: NumberedWrite) -> WrittenEvents:
        """Write the rows of a plan that somebody has made, if they are not there."""
        self._passed = None
        if plan.plan["rows"] and self._written_at(plan) is None:
            return replace(self._write(plan, self._derive(WriteRange.of(plan))), more=True)
        self._done = plan.number
        return WrittenEvents()

    def _write(self, plan: NumberedWrite, derived: Derived) -> WrittenEvents:
        """Write the rows of a plan; where somebody else has, Delta takes none."""
        count = len(derived.events)
        if count:
            rows = _rows(derived.events, plan.planned_at)
            reach("derived.before")
            try:
                tag = f"{rows_begin(plan)}{uuid.uuid4().hex}"
                version = self._writer.append(self._tables.events, rows, plan.number, tag=tag)
            except SequenceTaken:
                version = None
            reach("derived.after")
            if version is None:
                version, count = self._written_at(plan), 0
            if version is not None:
                self.tasks.know(version, plan.planned_at)
        self._passed, self._done = None, plan.number
        ignored, stranded = len(derived.ignored), len(derived.stranded)
        if count or ignored or stranded:
            told = {"number": plan.number, "events": count}
            logger.info("events_derived", extra={**told, "ignored": ignored, "stranded": stranded})
        return WrittenEvents(events=count, ignored=ignored, stranded=stranded)

    def _written_at(self, plan: NumberedWrite) -> int | None:
        """Return the commit of the rows of a plan; None if it is not among those made lately.

        Raises:
            LogRewound: other rows carry its number, those of a plan that is lost.
        """
        ours, number = rows_begin(plan), plan.number
        for commit in self._history.back(self._tables.events, COMMITS_LOOKED_AT):
            tag = commit.tag or ""
            if tag.startswith(ours):
                return commit.version
            if tag.startswith(f"{APP_ID}/{number}/"):
                raise LogRewound(table=self._tables.progress, writer=APP_ID, number=number)
        return None

    def _head(self, table: str) -> int:
        """Return the latest version of a table."""
        commit = self._history.newest(table)
        if commit is None:
            raise NoOutboxHere(where=table)
        return commit.version


def is_far(last: NumberedWrite | None, read: WriteRange) -> bool:
    """Say whether so much was read since the last plan without finding anything that it is worth
    one, by which maintenance may let go of it.

    Args:
        last: the last plan, None if there is none.
        read: what was read last.
    """
    if last is None:
        return True
    before = WriteRange.of(last)
    commits = read.events.to - before.events.to + read.transitions.to - before.transitions.to
    return commits >= MOST_UNWRITTEN or read.at - last.planned_at >= LONGEST_UNWRITTEN


def new_plan(read: WriteRange, derived: Derived) -> dict[str, Any]:
    """Return a plan. Maintenance keeps what its rows are made of until the next one is there.

    Args:
        read: the range.
        derived: what is to be written.
    """

    def kept(span: Span) -> int:
        return span.after if derived.events else span.to

    return {
        "events": {"to": kept(read.events)},
        "transitions": {"to": kept(read.transitions)},
        "range": read.as_plan(),
        "rows": len(derived.events),
        "ignored": [asdict(one) for one in derived.ignored],
        "stranded": [asdict(one) for one in derived.stranded],
    }


def rows_begin(plan: NumberedWrite) -> str:
    """Return how the commit tag of the rows of a plan begins, by which they are told from those of
    another plan of the same number.

    Args:
        plan: the plan.
    """
    text = json.dumps(plan.plan, sort_keys=True)
    return f"{APP_ID}/{plan.number}/{hashlib.sha256(text.encode()).hexdigest()[:12]}/"


def _rows(events: Sequence[NewEvent], at: datetime) -> pa.Table:
    rows = [
        {
            "event_id": one.event_id,
            "event_type": one.event_type,
            "payload": one.payload,
            "created_at": one.created_at,
            "ordering_key": one.ordering_key,
            "partition_key": one.partition_key,
            "metadata": None if one.metadata is None else list(one.metadata.items()),
            "ordinal": place,
            "appended_at": at,
        }
        for place, one in enumerate(events)
    ]
    return pa.Table.from_pylist(rows, schema=_ROWS)
