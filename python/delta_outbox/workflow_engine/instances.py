"""Instances of workflows: what has happened to an order, what comes next, and how it is ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.lifecycle.states import OPEN_STATES, State
from delta_outbox.operations.argument_rules import MAX_IDS, Arguments
from delta_outbox.operations.request_expansion import perform
from delta_outbox.operations.requests import kill_request
from delta_outbox.workflow_engine import workflow_views as views
from delta_outbox.workflow_engine.workflow_plans import WORKFLOWS, WorkflowPlans
from delta_outbox.workflow_engine.workflow_states import OPEN

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

Row = Mapping[str, Any]


class UnknownInstance(OutboxError):
    """No instance has this key."""

    code = "UNKNOWN_INSTANCE"
    remedy = "`outbox workflow instances` lists those that there are."


class SeveralInstances(OutboxError):
    """Instances of several workflows have this business key."""

    code = "SEVERAL_INSTANCES"
    remedy = "Add --workflow NAME."


@dataclass(frozen=True, kw_only=True)
class Cancellation:
    """What is cancelled.

    Args:
        cancelled: the instances, each with the task at which it stands.
        left_out: those that were named and cannot be cancelled; the column refusal says why.
        command_id: of the kill of their tasks; None if nothing was written.
    """

    cancelled: Sequence[Row]
    left_out: Sequence[Row] = field(default_factory=list)
    command_id: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the document that --json prints."""
        return {
            "instances": len(self.cancelled),
            "cancelled": list(self.cancelled),
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
        writes = NumberedWrites(outbox.spark, outbox.tables, writer=WORKFLOWS, clock=outbox.clock)
        self._plans = WorkflowPlans(writes)

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
        self,
        instances: Sequence[str] = (),
        *,
        workflow: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        actor: str,
        reason: str,
        dry_run: bool = True,
    ) -> Cancellation:
        """End open instances by the default exit of their workflow: the task at which each stands
        is killed. A call that is in flight is finished; if it decides, its instance goes on.

        Args:
            instances: business keys, or keys among those of all workflows; any if left out.
            workflow: only of this one.
            since: only those started at this instant or later.
            until: only those started before this instant.
            actor: who asks, one line.
            reason: why, one line.
            dry_run: only show it.

        Raises:
            WrongUsage: arguments break rules, or nothing says which instances are meant.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        given = Arguments()
        given.instant("since", since)
        given.instant("until", until)
        if not instances and workflow is None:
            given.refuse("instances", "must be named, or a workflow", None)
        if given.problems:
            raise WrongUsage(f"workflow cancel: {'; '.join(given.problems)}.")
        self._outbox.refresh(planned_by=self._outbox.worker_id)
        names = [*dict.fromkeys(instances)]
        narrowed: Mapping[str, Any] = {"states": OPEN, "since": since, "until": until}
        found, more = views.instances(
            self._outbox,
            instances=names,
            workflow=workflow,
            limit=MAX_IDS,
            **({} if names else narrowed),
        )
        if more:
            raise WrongUsage(
                f"workflow cancel: more than {MAX_IDS} instances are meant.",
                remedy="Narrow it with --since and --until, and cancel part after part.",
            )
        if names:
            found = [self._named(one, found) for one in names]
        rows = [_cancelled(one, self._refusal(one, since, until)) for one in found]
        left_out = [one for one in rows if one["refusal"]]
        good = [one for one in rows if not one["refusal"]]
        ids = [str(one["task_id"]) for one in good]
        # What a kill asks for is checked also where nothing is left to kill.
        request = kill_request(
            event_ids=ids or ["none"], actor=actor, reason=reason, dry_run=dry_run
        )
        if not ids:
            return Cancellation(cancelled=[], left_out=left_out)
        report = perform(self._outbox, request)
        moved = {str(row["event_id"]): str(row["refusal"]) for row in report.left_out}
        for row in [one for one in good if one["task_id"] in moved]:
            good.remove(row)
            left_out.append({**row, "refusal": f"its task {moved[row['task_id']]}"})
        if report.command_id is not None:
            self._outbox.apply_commands_if_alone()
        return Cancellation(cancelled=good, left_out=left_out, command_id=report.command_id)

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

    def _refusal(self, row: Row, since: datetime | None, until: datetime | None) -> str | None:
        """Say why an instance cannot be cancelled; None if it can."""
        if row["state"] == "ended":
            return f"has ended with {row['exit']}"
        started = datetime.fromisoformat(str(row["started_at"]))
        if (since and started < since) or (until and started >= until):
            return "was started at another time"
        if row["task_id"] is None:
            return "is stranded" if row["state"] == "stranded" else "is between two tasks"
        plan = self._plans.plan(int(row["plan"]))
        version = plan.versions.get(str(row["workflow"])) if plan else None
        if version is None or not version.routing.row["default_exit"]:
            return "has no default exit, so nothing would follow"
        return None


def _cancelled(row: Row, refusal: str | None) -> dict[str, Any]:
    names = ("workflow", "instance", "state", "task", "task_id", "started_at")
    return {**{name: row[name] for name in names}, "refusal": refusal}


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
