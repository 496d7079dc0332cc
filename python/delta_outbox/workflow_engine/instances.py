"""Instances of workflows: what has happened to an order, what comes next, and how it is ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Unpack

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.states import OPEN_STATES, State
from delta_outbox.operations.argument_rules import MAX_IDS
from delta_outbox.workflow_engine import workflow_views as views
from delta_outbox.workflow_engine.task_requests import (
    Selection,
    Targets,
    TaskRequest,
    task_request,
)

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

Row = Mapping[str, Any]

DONE_BY: Final = {"cancel": "cancelled", "extend": "extended", "assign": "assigned"}
"""What is said of tasks after a request of a kind."""


class UnknownInstance(OutboxError):
    """No instance has this key."""

    code = "UNKNOWN_INSTANCE"
    remedy = "`outbox workflow instances` lists those that there are."


class SeveralInstances(OutboxError):
    """Instances of several workflows have this business key."""

    code = "SEVERAL_INSTANCES"
    remedy = "Add --workflow NAME."


@dataclass(frozen=True, kw_only=True)
class TasksReport:
    """What a request about open tasks is about.

    Args:
        kind: extend, cancel or assign.
        tasks: what it gets: the instances, each with the task at which it stands.
        left_out: what it does not get; the column refusal says why.
        command_id: of the command; None if nothing was written.
    """

    kind: str
    tasks: Sequence[Row]
    left_out: Sequence[Row] = field(default_factory=list)
    command_id: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the document that --json prints."""
        return {
            "kind": self.kind,
            "instances": len(self.tasks),
            DONE_BY[self.kind]: list(self.tasks),
            "left_out": list(self.left_out),
            "command_id": self.command_id,
        }


class Instances:
    """The instances of the workflows of one outbox.

    Args:
        outbox: whose.
    """

    def __init__(self, outbox: Store) -> None:
        self._outbox = outbox

    def show(self, instance: str, *, workflow: str | None = None) -> dict[str, Any]:
        """Return what has happened to an instance, what is not known, and what happens next.

        Args:
            instance: its business key, or its key among those of all workflows.
            workflow: of it, where several have the same business key.

        Raises:
            UnknownInstance: there is none.
            SeveralInstances: there are some of several workflows.
        """
        self._outbox.refresh(planned_by=self._outbox.worker_id)
        shown = self._named(
            instance, views.instances(self._outbox, instances=[instance], workflow=workflow)[0]
        )
        key = str(shown["instance_key"])
        tasks = views.tasks(self._outbox, key)
        attempts = views.attempts(self._outbox, key)
        return {
            "instance": shown,
            "tasks": tasks,
            "attempts": attempts,
            "unknown": unknown_of(tasks, attempts),
            "next": next_of(shown, tasks),
        }

    def cancel(
        self, instances: Sequence[str] | None = None, **selected: Unpack[Selection]
    ) -> TasksReport:
        """End open instances by the default exit of their workflow: the task at which each stands
        is killed. A call that is in flight is finished; if it decides, its instance goes on.

        Args:
            instances: business keys, or keys among those of all workflows; any if left out.
            selected: as `Selection` says; instances, a workflow or a third party must be named.

        Raises:
            WrongUsage: arguments break rules, or nothing says which instances are meant.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        return self.perform(task_request("cancel", instances=instances, **selected))

    def extend(
        self,
        instances: Sequence[str] | None = None,
        *,
        to: datetime | None = None,
        by_seconds: int | None = None,
        **selected: Unpack[Selection],
    ) -> TasksReport:
        """Let open tasks expire later. What expires at that time or later already is left alone, as
        is what never expires, and an item that is not open for an answer (yet, or any more).

        Args:
            instances: business keys, or keys among those of all workflows; any if left out.
            to: when they expire then.
            by_seconds: by how much each expires later; this or `to`.
            selected: as `Selection` says; instances, a workflow or a third party must be named.

        Raises:
            WrongUsage: arguments break rules, or nothing says which tasks are meant.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        given = {"instances": instances, "to": to, "by_seconds": by_seconds, **selected}
        return self.perform(task_request("extend", **given))

    def perform(self, request: TaskRequest) -> TasksReport:
        """Expand a request, and append it unless it is a dry run.

        Args:
            request: checked.

        Raises:
            WrongUsage: it is about more tasks than one request may be.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        self._outbox.refresh(planned_by=self._outbox.worker_id)
        targets = Targets.of(self._outbox, request)
        found = targets.documents()
        tasks = [one for one in found if not one["refusal"]]
        left_out = [one for one in found if one["refusal"]]
        left_out += self._without_task(request, found)
        is_appended = bool(tasks) and not request.dry_run
        if is_appended:
            targets.append()
            self._outbox.apply_commands_if_alone()
        return TasksReport(
            kind=request.kind,
            tasks=tasks,
            left_out=left_out,
            command_id=targets.command_id if is_appended else None,
        )

    def _without_task(self, request: TaskRequest, found: Sequence[Row]) -> list[dict[str, Any]]:
        """Return the tasks and instances that a request names, and that it finds open no more."""
        ids = {one["task_id"] for one in found}
        unknown = [
            {"task_id": one, "instance": None, "refusal": "is no open task that is meant"}
            for one in request.task_ids or ()
            if one not in ids
        ]
        names = request.instances or ()
        if not names:
            return unknown
        rows, _ = views.instances(
            self._outbox, instances=names, workflow=request.workflow, limit=MAX_IDS
        )
        named = [self._named(one, rows) for one in names]
        keys = {one["instance_key"] for one in found}
        columns = ("workflow", "instance", "instance_key", "state", "task", "task_id")
        return unknown + [
            {**{name: one[name] for name in (*columns, "started_at")}, "refusal": _why_none(one)}
            for one in named
            if one["instance_key"] not in keys
        ]

    def _named(self, instance: str, rows: Iterable[Row]) -> dict[str, Any]:
        """Return the one of some instances that has a name."""
        found = [row for row in rows if instance in (row["instance"], row["instance_key"])]
        if not found:
            ignored = views.ignored_starts(self._outbox, instance)
            why = "".join(
                f" Its start event {one['event_id']} began nothing ({one['why']}): {one['message']}"
                for one in ignored[:1]
            )
            raise UnknownInstance(f"There is no instance {instance!r}.{why}")
        if len({row["workflow"] for row in found}) > 1:
            names = ", ".join(sorted({str(row["workflow"]) for row in found}))
            raise SeveralInstances(f"Several workflows have an instance {instance!r}: {names}.")
        return dict(found[0])


def _why_none(instance: Row) -> str:
    """Say why an instance has no open task."""
    match instance["state"]:
        case "ended":
            return f"has ended with {instance['exit']}"
        case "stranded":
            return "is stranded"
    return "is between two tasks"


def unknown_of(tasks: Iterable[Row], attempts: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the tasks of which nobody knows whether they were done.

    Args:
        tasks: of an instance.
        attempts: of them.
    """
    unsure = {one["task_id"] for one in attempts if one["known"] == "unsure"}
    return [
        {
            "task_id": one["task_id"],
            "title": one["title"] or one["task"],
            "third_party": one["third_party"],
            "is_final": one["delivery_state"] not in OPEN_STATES,
        }
        for one in tasks
        if one["cause"] == "uncertain"
        or (one["delivery_state"] in OPEN_STATES and one["task_id"] in unsure)
    ]


def next_of(instance: Row, tasks: Sequence[Row]) -> dict[str, Any] | None:
    """Return what happens next to an instance, when, and who must do something; None if it has
    ended.

    Args:
        instance: a row of `workflow_instances`.
        tasks: of it.
    """
    if instance["state"] == "ended":
        return None
    found: dict[str, Any] = dict.fromkeys(
        ("what", "task_id", "title", "at", "due_at", "expires_at", "by", "roles", "problem")
    )
    open_ = next((one for one in tasks if one["delivery_state"] in OPEN_STATES), None)
    if open_ is None:
        is_stranded = instance["state"] == "stranded"
        what = "person must look" if is_stranded else "what follows is written"
        return {**found, "what": what, "problem": instance["problem"]}
    found |= {
        "task_id": open_["task_id"],
        "title": open_["title"] or open_["task"],
        "at": instance["next_at"],
        "due_at": open_["due_at"],
        "expires_at": open_["expires_at"],
    }
    if open_["held_by"] == TO_DO:
        roles = str(open_["roles"] or "").split("|")
        return {**found, "what": "answer", "roles": roles, "at": None}
    if open_["delivery_state"] == State.CLAIMED:
        return {**found, "what": "attempt under way", "by": open_["held_by"]}
    return {**found, "what": "item opens" if open_["category"] == "to_do" else "attempt"}
