"""Where an operator lets an open instance go on: by a late answer, or at a task of another version.

The command is a kill of the task at which the instance stands. Its arguments say what follows
instead of the default exit:

    {"late": {"task_id": ..., "task": ..., "outcome": ..., "data": "{...}"}}
    {"to": {"plan": 3, "task": ...}}

Whoever derives reads the command by its id from the log, so all writers go by the same words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from delta_outbox.railway.graph import Event
from delta_outbox.railway.nesting import MOST_LEVELS, levels_of
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Exit
from delta_outbox.railway.routing import LeadsNowhere, Place, Routing, TaskEnding
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.derivation.plans import Plans, Version
from delta_outbox.workflow_engine.derivation.starts import CannotBegin, check_names, fields_of

MOVED: Final = "moved"
"""What stands as the outcome of a task that was ended because its instance goes on elsewhere."""
_MOST_PLAN: Final = 2**63 - 1  # what the log can hold as a number


@dataclass(frozen=True, kw_only=True, slots=True)
class LateAnswer:
    """An answer to a task that had ended without it, and that the instance goes on by.

    Args:
        task_id: the task identifier.
        task: its name in the workflow.
        outcome: that was decided.
        data: that belongs to the outcome, as JSON.
    """

    task_id: str
    task: str
    outcome: str
    data: str = "{}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherVersion:
    """A task of another version, at which the instance goes on.

    Args:
        plan: number of the plan of `workflows` that has the version.
        task: its name in the workflow.
    """

    plan: int
    task: str


Move = LateAnswer | OtherVersion


# twin: macros/workflows/is_move.sql::is_move
def move_of(arguments: str | None) -> Move | None:
    """Return what a kill says of where the instance goes on; None if it says nothing of it.

    Args:
        arguments: of the command, as JSON; somebody may have written anything by hand.

    Raises:
        LeadsNowhere: it says something that cannot be followed.
    """
    if arguments is None:
        return None
    if levels_of(arguments) > MOST_LEVELS:
        raise LeadsNowhere(f"The command is nested deeper than {MOST_LEVELS} levels.")
    try:
        body = json.loads(arguments)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    match body.get("late"), body.get("to"):
        case None, None:
            return None
        case {
            "task_id": str(task_id),
            "task": str(task),
            "outcome": str(outcome),
            "data": str(data),
        }, None:
            return LateAnswer(task_id=task_id, task=task, outcome=outcome, data=data)
        case None, {"plan": int(plan), "task": str(task)} if (
            0 < plan <= _MOST_PLAN and not isinstance(plan, bool)
        ):
            return OtherVersion(plan=plan, task=task)
    raise LeadsNowhere("The command does not say where the instance goes on.")


def moved(task: TaskEvent, move: Move, plans: Plans) -> tuple[TaskEvent, Place | Event]:
    """Return an instance as it goes on, and where.

    Args:
        task: at which it stood.
        move: where it goes on.
        plans: among them that of the task, or that of the other version.

    Raises:
        LeadsNowhere: the version has no such task or outcome, the instance has never come to the
            task that was answered late, or goes on by that answer already.
    """
    if isinstance(move, LateAnswer):
        return _by_late_answer(task, move, plans)
    version = version_of(plans, move.plan, task.workflow)
    if move.task not in version.routing.tasks:
        raise LeadsNowhere(f"Plan {move.plan} of {task.workflow} has no task {move.task!r}.")
    try:
        fields = fields_of(task.origin.payload.encode(), version)
        check_names(version.routing, task.instance, fields)
    except CannotBegin as error:
        raise LeadsNowhere(str(error)) from error
    before = task.place.visits
    visits = {**before, move.task: before.get(move.task, 0) + 1}
    place = Place(task=move.task, visits=visits, facts=task.place.facts)
    return replace(task, plan=move.plan, version=version.number, fields=fields), place


def _by_late_answer(
    task: TaskEvent, late: LateAnswer, plans: Plans
) -> tuple[TaskEvent, Place | Event]:
    routing = routing_of(plans, task.plan, task.workflow)
    if late.task_id in task.accepted:
        raise LeadsNowhere(f"The late answer to {late.task_id!r} was accepted before.")
    if late.task not in routing.tasks or late.task not in task.place.visits:
        raise LeadsNowhere(f"The instance has never come to {late.task!r}.")
    ending = TaskEnding(cause="decided", outcome=chosen(late.outcome), data=data_of(late.data))
    to = routing.after(replace(task.place, task=late.task), ending)
    return replace(task, accepted=(*task.accepted, late.task_id)), to


def version_of(plans: Plans, plan: int, workflow: str) -> Version:
    """Return a workflow as a plan has it.

    Args:
        plans: by number.
        plan: number of the plan.
        workflow: its name.

    Raises:
        LeadsNowhere: it is not there.
    """
    if plan not in plans or workflow not in plans[plan].versions:
        raise LeadsNowhere(f"Plan {plan} of {workflow} is not there.")
    return plans[plan].versions[workflow]


def routing_of(plans: Plans, plan: int, workflow: str) -> Routing:
    """Return where the instances of a workflow go by a plan.

    Args:
        plans: by number.
        plan: number of the plan.
        workflow: its name.

    Raises:
        LeadsNowhere: it is not there.
    """
    return version_of(plans, plan, workflow).routing


def chosen(outcome: str | None) -> str | Exit | None:
    """Return an outcome as it stands in a log.

    Args:
        outcome: as text; that of `DEFAULT_EXIT` is its value, None leaves it to the rows.
    """
    return DEFAULT_EXIT if outcome == DEFAULT_EXIT.value else outcome


def data_of(text: str) -> Mapping[str, Any]:
    """Return the data of a decision.

    Args:
        text: as it stands in a log.

    Raises:
        LeadsNowhere: it is nested too deep, or no object.
    """
    if levels_of(text) > MOST_LEVELS:
        raise LeadsNowhere(f"Its data is nested deeper than {MOST_LEVELS} levels.")
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise LeadsNowhere("Its data is no JSON object.")
    return data
