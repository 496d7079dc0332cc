"""What follows a start event and the ending of a task, and which of it is to be written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.outcomes import Exit
from delta_outbox.railway.routing import CAUSES, LeadsNowhere, Place, TaskEnding
from delta_outbox.workflow_engine.derivation.events import Before, NewEvent, StartEvent, TaskEvent
from delta_outbox.workflow_engine.derivation.moves import (
    MOVED,
    Move,
    OtherVersion,
    chosen,
    data_of,
    move_of,
    moved,
    routing_of,
)
from delta_outbox.workflow_engine.derivation.plans import Plans
from delta_outbox.workflow_engine.derivation.starts import (
    IgnoredStart,
    WhyIgnored,
    begin,
    ignored,
    named,
)

KILLED: Final = CAUSES[Reason.OPERATOR]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """A task that has ended.

    Args:
        task: that has.
        ending: what has become of it.
        at: when that went on record.
        position: of its transition in the log: epoch, lane, sequence.
        problem: why nothing can follow; empty if something may.
        move: where an operator lets the instance go on, None if nowhere else.
        may_have_acted: whether an attempt without a known result is on record; asked of moved ones.
    """

    task: TaskEvent
    ending: TaskEnding
    at: datetime
    position: tuple[int, int, int]
    problem: str = ""
    move: Move | None = None
    may_have_acted: bool = False

    @property
    def plans(self) -> frozenset[int]:
        """Return the numbers of the plans that say what follows."""
        to = {self.move.plan} if isinstance(self.move, OtherVersion) else set()
        return frozenset({self.task.plan, *to})

    @classmethod
    def read(
        cls,
        task: TaskEvent,
        reason: str,
        outcome: str | None,
        data: str | None,
        at: datetime,
        position: tuple[int, int, int],
        *,
        command: str | None = None,
        may_have_acted: bool = False,
    ) -> Ended:
        """Return the ending that a transition has on record.

        Args:
            task: that has ended.
            reason: of the transition.
            outcome: of the transition; that of `DEFAULT_EXIT` is its value, None leaves it to
                the rows.
            data: `outcome_data` of the transition.
            at: `occurred_at` of the transition.
            position: `epoch`, `lane` and `sequence` of the transition.
            command: arguments of the command that the transition applies, where an operator has
                ended the task.
            may_have_acted: whether an attempt without a known result is on record.
        """
        cause, problem = CAUSES[Reason(reason)], ""
        facts: Mapping[str, Any] = {}
        move: Move | None = None
        try:
            facts = data_of(data or "{}")
            if cause == KILLED:
                move = move_of(command)
        except LeadsNowhere as error:
            problem = str(error)
        return cls(
            task=task,
            ending=TaskEnding(cause=cause, outcome=chosen(outcome), data=facts),
            at=at,
            position=position,
            problem=problem,
            move=move,
            may_have_acted=may_have_acted,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Next:
    """A row that follows.

    Args:
        row: for the log.
        task: that begins the instance, or has ended.
        start: the event that begins the instance; None if a task has ended.
        opens: the task that the row is; None if it ends the instance.
    """

    row: NewEvent
    task: TaskEvent
    start: StartEvent | None = None
    opens: TaskEvent | None = None

    @property
    def number(self) -> int:
        """Return the place of the row among those of its instance, from 1."""
        return 1 if self.start else self.task.number + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Stranded:
    """An instance of which nobody can say how it goes on; somebody must look.

    Args:
        key: of the instance.
        task_id: of the task that has ended.
        message: why, in a sentence.
        number: place of what would follow among the rows of the instance; None if nobody knows.
    """

    key: str
    task_id: str
    message: str
    number: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """What follows.

    Args:
        rows: for the log of events.
        ignored: start events that begin nothing.
        stranded: instances that do not go on.
        told: events that tell of items, for the log as well.
    """

    rows: tuple[Next, ...] = ()
    ignored: tuple[IgnoredStart, ...] = ()
    stranded: tuple[Stranded, ...] = ()
    told: tuple[NewEvent, ...] = ()

    @property
    def events(self) -> tuple[NewEvent, ...]:
        """Return all that is to be written."""
        return (*(one.row for one in self.rows), *self.told)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownInstance:
    """What the log has of an instance, open, ended or purged.

    Args:
        begun_by: id of the event that began it, None where nobody can say any more.
        rows: how many events it has: its tasks, and the one that has ended it.
    """

    begun_by: str | None
    rows: int


def derive(
    starts: Iterable[StartEvent],
    ended: Iterable[Ended],
    plans: Plans,
    newest: int,
    *,
    former: Iterable[int] = (),
) -> Derived:
    """Return what follows news of the log, without a look at what has followed already.

    Args:
        starts: events that may start a workflow of the newest plan, or of a former one.
        ended: tasks that have ended.
        plans: the newest, the former ones, and those of the tasks.
        newest: number of the plan by which instances begin.
        former: numbers of plans that were in force until the newest one was: what would have
            started a workflow by them alone starts nothing, and that is kept.
    """
    rows: list[Next] = []
    ignored_starts: list[IgnoredStart] = []
    stranded: list[Stranded] = []
    for event in sorted(starts, key=lambda one: (one.arrival, one.event_id)):
        started = plans[newest].started_by(event.event_type)
        for version in started:
            first = begin(event, version)
            if isinstance(first, IgnoredStart):
                ignored_starts.append(first)
            else:
                rows.append(Next(row=first.row(), task=first, start=event, opens=first))
        names = {
            one.routing.workflow
            for number in former
            if number in plans
            for one in plans[number].started_by(event.event_type)
        }
        for name in sorted(names - {one.routing.workflow for one in started}):
            message = f"Since plan {newest} of the workflows no event of this type starts it."
            ignored_starts.append(ignored(event, name, WhyIgnored.STARTS_ON_CHANGED, message))
    for one in sorted(ended, key=lambda each: each.position):
        try:
            after = follow(one, plans)
        except LeadsNowhere as error:
            stranded.append(_stranded(one.task, str(error)))
        else:
            opens = after if isinstance(after, TaskEvent) else None
            row = after.row() if isinstance(after, TaskEvent) else after
            rows.append(Next(row=row, task=one.task, opens=opens))
    return Derived(rows=tuple(rows), ignored=tuple(ignored_starts), stranded=tuple(stranded))


def follow(ended: Ended, plans: Plans) -> TaskEvent | NewEvent:
    """Return what follows a task: the next one, or the domain event that ends its instance.

    Args:
        ended: the task, and what has become of it.
        plans: among them that of the task.

    Raises:
        LeadsNowhere: its version does not say, or is not there.
    """
    task, ending, move = ended.task, ended.ending, ended.move
    if ended.problem:
        raise LeadsNowhere(ended.problem)
    if move is not None and ended.may_have_acted:
        # It was attempted after the operator had looked: nothing is guessed of what that has done.
        ending, move = TaskEnding(cause=CAUSES[Reason.UNCERTAIN]), None
    if move is not None:
        after, to = moved(task, move, plans)
        outcome = MOVED
    else:
        routing = routing_of(plans, task.plan, task.workflow)
        after, to = task, routing.after(task.place, ending)
        name = routing.outcome(task.place.task, ending)
        outcome = name.value if isinstance(name, Exit) else str(name)
    if isinstance(to, Place):
        before = Before(
            task=task.place.task, task_id=task.task_id, cause=ending.cause, outcome=outcome
        )
        following = replace(after, place=to, before=before, created_at=ended.at)
        return named(following, routing_of(plans, after.plan, after.workflow))
    return NewEvent(
        event_id=task.key,
        event_type=to.event_type,
        payload=task.origin.payload.encode(),
        created_at=ended.at,
        ordering_key=task.origin.ordering_key,
        partition_key=task.origin.partition_key,
        metadata={
            "workflow": task.workflow,
            "version": str(task.version),
            "plan": str(task.plan),
            "instance": task.instance,
            "start_event_id": task.origin.event_id,
            "started_at": task.origin.started_at,
            "task": task.place.task,
            "task_id": task.task_id,
            "cause": ending.cause,
            "outcome": outcome,
        },
    )


def admit(
    derived: Derived, instances: Mapping[str, KnownInstance], ids: Collection[str]
) -> Derived:
    """Return what is to be written: of what follows, that which is the next row of its instance.

    What the log has already is passed over, whether it can be made once more or not.

    Args:
        derived: what follows.
        instances: by key, what the log has of the instances of its rows, and of those stranded.
        ids: those of its rows that some event of the log has.
    """
    known, taken = dict(instances), set(ids)
    rows: list[Next] = []
    ignored_starts = list(derived.ignored)
    stranded = [
        one
        for one in derived.stranded
        if one.number is None or one.key not in known or one.number > known[one.key].rows
    ]
    for one in sorted(derived.rows, key=lambda each: each.number):
        task, start = one.task, one.start
        before = known.get(task.key)
        there = before.rows if before else 0
        if before and one.number <= there:
            if start and start.event_id != before.begun_by:
                first = f"event '{before.begun_by}'" if before.begun_by else "purged event"
                message = f"The {first} has begun this instance."
                why = WhyIgnored.SECOND_START
                ignored_starts.append(ignored(start, task.workflow, why, message, task.instance))
        elif one.number > there + 1:
            message = f"Event {one.number} would follow, and the log has {there} of the instance."
            stranded.append(_stranded(task, message))
        elif one.row.event_id in taken:
            message = f"Another event has the id '{one.row.event_id}'."
            if start:
                why = WhyIgnored.IDENTIFIER_TAKEN
                ignored_starts.append(ignored(start, task.workflow, why, message, task.instance))
            else:
                stranded.append(_stranded(task, message))
        else:
            rows.append(one)
            taken.add(one.row.event_id)
            known[task.key] = KnownInstance(begun_by=task.origin.event_id, rows=one.number)
    return Derived(rows=tuple(rows), ignored=tuple(ignored_starts), stranded=tuple(stranded))


def _stranded(task: TaskEvent, message: str) -> Stranded:
    number = task.number + 1
    return Stranded(key=task.key, task_id=task.task_id, message=message, number=number)
