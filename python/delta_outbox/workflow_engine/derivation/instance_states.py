"""Where an instance stands, as a fold over its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from delta_outbox.railway.routing import LeadsNowhere
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Ended, Stranded, follow
from delta_outbox.workflow_engine.derivation.plans import Plans


class Status(StrEnum):
    """Where an instance stands."""

    RUNNING = "running"
    WAITING = "waiting"
    ENDED = "ended"
    STRANDED = "stranded"


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceState:
    """Where an instance stands, and what happens next.

    Args:
        workflow: its name.
        instance: of the workflow.
        plan: number of the plan that it has started with.
        version: of the workflow that it has started with.
        status: running: somebody is called; waiting: somebody must answer; ended; stranded: a
            person must look.
        task: at which it stands, or by which it has ended.
        task_id: of this task.
        visit: how often it has come to this task.
        until: when this task expires; None if it never does, or the instance has ended.
        never_why: why this task never expires; empty if it does.
        due_at: when who must answer is reminded, None if nobody is.
        roles: who may answer, where it waits.
        end: type of the event that has ended it, None if it has not.
        ended_at: when, None if it has not.
        uncertain: identifiers of tasks of which nobody knows whether they were done.
        problem: why it is stranded; empty if it is not.
    """

    workflow: str
    instance: str
    plan: int
    version: int
    status: Status
    task: str
    task_id: str
    visit: int
    until: datetime | None = None
    never_why: str = ""
    due_at: datetime | None = None
    roles: tuple[str, ...] = ()
    end: str | None = None
    ended_at: datetime | None = None
    uncertain: tuple[str, ...] = ()
    problem: str = ""


def instance_state(
    tasks: Iterable[TaskEvent],
    ended: Mapping[str, Ended],
    plans: Plans,
    stranded: Stranded | None = None,
) -> InstanceState:
    """Return where an instance stands. What follows counts before it is written.

    Args:
        tasks: those of the instance, in any order, one at least.
        ended: by task identifier, those of them that have ended.
        plans: among them that of the instance.
        stranded: what is on record of an instance that does not go on.
    """
    every = sorted(tasks, key=lambda one: one.number)
    task, end, problem = every[-1], None, stranded.message if stranded else ""
    last = ended.get(task.task_id)
    if last and not problem:
        try:
            after = follow(last, plans)
        except LeadsNowhere as error:
            problem = str(error)
        else:
            task, end = (after, None) if isinstance(after, TaskEvent) else (task, after)
    routing = plans[task.plan].versions[task.workflow].routing
    row = routing.tasks[task.place.task]
    status = (
        Status.STRANDED
        if problem
        else Status.ENDED
        if end
        else Status.WAITING
        if routing.is_to_do(task.place.task)
        else Status.RUNNING
    )
    goes_on = status in (Status.RUNNING, Status.WAITING)
    return InstanceState(
        workflow=task.workflow,
        instance=task.instance,
        plan=task.plan,
        version=task.version,
        status=status,
        task=task.place.task,
        task_id=task.task_id,
        visit=task.place.visit,
        until=task.expires_at if goes_on else None,
        never_why=row["never_expires_why"] if goes_on else "",
        due_at=task.due_at if goes_on else None,
        roles=tuple(row["roles"].split("|")) if status is Status.WAITING else (),
        end=end.event_type if end else None,
        ended_at=end.created_at if end else None,
        uncertain=tuple(
            one.task_id
            for one in every
            if one.task_id in ended and ended[one.task_id].ending.cause == "uncertain"
        ),
        problem=problem,
    )
