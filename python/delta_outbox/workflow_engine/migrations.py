"""Moves open instances to another version of their workflow: which of them, to which task, and
under which identifier.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.operations.argument_rules import Arguments
from delta_outbox.railway.identifiers import Template
from delta_outbox.railway.routing import LeadsNowhere, Place, Routing
from delta_outbox.store.command_arguments import arguments_of
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.derivation.moves import OtherVersion, moved
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.task_reader import TaskPlace

MOST_VERSION: Final = 2**31 - 1
MOST_PLANS: Final = 1_000  # the newest ones, among which a version is looked for


class UnknownVersion(OutboxError):
    """A workflow has never been in force in this version."""

    code = "UNKNOWN_VERSION"
    remedy = "`outbox workflow build`, then `outbox dbt build`, put a version into force."


@dataclass(frozen=True, kw_only=True)
class Migration:
    """How open instances of a workflow are moved.

    Args:
        workflow: its name.
        to_version: by which they go on.
        tasks: by the task at which an instance stands, that at which it goes on.
        from_version: only instances that go by this one; None: by any other one.
    """

    workflow: str
    to_version: int
    tasks: Mapping[str, str]
    from_version: int | None = None


def migration(
    *, workflow: object, to_version: object, tasks: object, from_version: object = None
) -> Migration:
    """Check how instances are to be moved.

    Args:
        workflow: its name.
        to_version: by which they go on, as people count.
        tasks: by the task at which an instance stands, that at which it goes on.
        from_version: only instances that go by this one.

    Raises:
        WrongUsage: arguments break rules; all of them are named.
    """
    given = Arguments()
    name = given.part("workflow", workflow)
    if workflow is None:
        given.refuse("workflow", "must be named", None)
    to = given.whole("to_version", to_version, 1, MOST_VERSION)
    if to_version is None:
        given.refuse("to_version", "must be given", None)
    from_ = given.whole("from_version", from_version, 1, MOST_VERSION)
    if to is not None and to == from_:
        given.refuse("from_version", "must be another one than `to_version`", from_)
    pairs = dict(tasks) if isinstance(tasks, Mapping) else {}
    if not pairs or not all(isinstance(one, str) and one for pair in pairs.items() for one in pair):
        given.refuse("tasks", "must name a task for each task that is left, one at least", tasks)
    if given.problems:
        raise WrongUsage(f"workflow migrate: {'; '.join(given.problems)}.")
    assert name is not None
    assert to is not None
    return Migration(workflow=name, to_version=to, tasks=pairs, from_version=from_)


def plan_of(asked: Migration, plans: Iterable[Plan]) -> Plan:
    """Return the plan by which instances go on: the newest that has the version.

    Args:
        asked: how they are moved.
        plans: the newest first; the first one is in force.

    Raises:
        UnknownVersion: none of them has it.
        WrongUsage: it has no such task, or leads to one that the workflows in force do not have, or
            have in another category.
    """
    in_force: Plan | None = None
    for plan in plans:
        in_force = in_force or plan
        version = plan.versions.get(asked.workflow)
        if version is not None and version.number == asked.to_version:
            break
    else:
        raise UnknownVersion(
            f"{asked.workflow} has never been in force as version {asked.to_version}."
        )
    routing = version.routing
    strange = sorted(set(asked.tasks.values()) - routing.tasks.keys())
    if strange:
        raise WrongUsage(
            f"workflow migrate: version {asked.to_version} of {asked.workflow} has no task "
            f"{', '.join(strange)}.",
            remedy=f"Map to one of {', '.join(sorted(routing.tasks))}.",
        )
    now = in_force.versions.get(asked.workflow)
    there = {} if now is None else now.routing.tasks
    reach = sorted(_reach(routing, asked.tasks.values()))
    changed = [
        one
        for one in reach
        if one in there and there[one]["category"] != routing.tasks[one]["category"]
    ]
    for tasks, why in (
        ([one for one in reach if one not in there], "do not have, so nobody has its code"),
        (changed, "have in another category"),
    ):
        if tasks:
            raise WrongUsage(
                f"workflow migrate: version {asked.to_version} of {asked.workflow} leads on to "
                f"{', '.join(tasks)}, which the workflows in force {why}.",
                remedy="Choose another version, or another task.",
            )
    return plan


def _reach(routing: Routing, tasks: Iterable[str]) -> set[str]:
    found: set[str] = set()
    ahead = [*tasks]
    while ahead:
        task = ahead.pop()
        if task not in found:
            found.add(task)
            ahead += routing.tasks_after(task)
    return found


# twin: macros/requests/stranding_tasks.sql::stranding_tasks
def tasks_again(routing: Routing, to: str, visits: Collection[str]) -> list[str]:
    """Return the tasks to which an instance would come, or might come later, once more under the
    same identifier, if it went on at a task: an identifier is used once, so it would be stranded
    there. No loop of a version has such a task, but who is moved leaves its routes.

    Args:
        routing: of the version by which it goes on.
        to: the task at which it goes on.
        visits: the tasks to which it has come so far.
    """
    return sorted(
        task
        for task in _reach(routing, [to]) & set(visits)
        if "visit" not in Template(routing.tasks[task]["identifier"]).fields
    )


def is_meant(row: Mapping[str, Any], asked: Migration, *, is_named: bool) -> bool:
    """Say whether a migration is about an open task: it goes by the version that is left, and by
    another one than that to which it would go. What is named is told in any case.

    Args:
        row: of the target, with its version.
        asked: how instances are moved.
        is_named: whether instances were named one by one.
    """
    return is_named or _why_not_from(row, asked) is None


def _why_not_from(row: Mapping[str, Any], asked: Migration) -> str | None:
    version = row["version"]
    if version == asked.to_version or asked.from_version not in (None, version):
        return f"goes by version {version}"
    return None


def judged(
    rows: Sequence[Mapping[str, Any]],
    asked: Migration,
    plan: Plan,
    tasks: Mapping[TaskPlace, TaskEvent],
) -> list[dict[str, Any]]:
    """Return open tasks with where each would go on, or why not (refusal). Whether an identifier is
    known is not asked here.

    Args:
        rows: the targets, with their refusal so far.
        asked: how instances are moved.
        plan: by which they go on.
        tasks: of the rows that have no refusal so far, as far as they could be read.
    """
    return [_judged(dict(row), asked, plan, tasks) for row in rows]


def _judged(
    row: dict[str, Any], asked: Migration, plan: Plan, tasks: Mapping[TaskPlace, TaskEvent]
) -> dict[str, Any]:
    to = asked.tasks.get(row["task"])
    found = row | {"to_version": asked.to_version, "to_task": to, "to_task_id": None}
    why = row["refusal"] or _why_not_from(row, asked)
    if why is None and to is None:
        why = f"stands at '{row['task']}', for which no task is mapped"
    task = tasks.get((row["event_id"], row["arrival"]))
    if why is None and task is None:
        why = "was made by no numbered write"
    if why is not None or to is None or task is None:
        return found | {"refusal": why}
    move = OtherVersion(plan=plan.number, task=to)
    try:
        after, place = moved(task, move, {plan.number: plan})
    except LeadsNowhere as error:
        return found | {"refusal": f"cannot go by version {asked.to_version}: {error}"}
    assert isinstance(place, Place)
    routing = plan.versions[asked.workflow].routing
    again = tasks_again(routing, to, task.place.visits)
    if again:
        why = (
            f"may come again to {', '.join(again)}, whose identifier has no {{visit}}, and would "
            "be stranded there: migrate it to a version whose identifier has one, or answer or "
            "cancel its task"
        )
        return found | {"refusal": why}
    task_id = routing.task_id(place, task.instance, after.fields)
    arguments = {**arguments_of(row["arguments"]), "to": {"plan": plan.number, "task": to}}
    return found | {"to_task_id": task_id, "arguments": json.dumps(arguments)}


def refused_names(
    found: Sequence[Mapping[str, Any]], known: Collection[str], routing: Routing
) -> list[dict[str, Any]]:
    """Return open tasks with a refusal of those whose identifier is known: it has an outcome, or
    will have one, and an identifier has one only.

    Args:
        found: as `judged` returns them.
        known: those of their identifiers that any event has, or had.
        routing: of the version by which they go on.
    """
    counts = Counter(one["to_task_id"] for one in found if one["refusal"] is None)
    return [dict(one) | {"refusal": _why_not_named(one, counts, known, routing)} for one in found]


def _why_not_named(
    row: Mapping[str, Any], counts: Mapping[str, int], known: Collection[str], routing: Routing
) -> str | None:
    task_id = row["to_task_id"]
    if row["refusal"] is not None or (task_id not in known and counts[task_id] == 1):
        refusal: str | None = row["refusal"]
        return refusal
    identifier = routing.tasks[row["to_task"]]["identifier"]
    remedy = (
        ""
        if "visit" in Template(identifier).fields
        else f": give the identifier of '{row['to_task']}' a {{visit}}, and build that version"
    )
    return f"would get the identifier '{task_id}' of another event{remedy}"
