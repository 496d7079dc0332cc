"""Instances of workflows: what has happened to an order, what comes next, and how it is ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.reserved_names import TO_DO, WORKFLOWS, reserved
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.lifecycle.states import OPEN_STATES, State
from delta_outbox.operations.argument_rules import MAX_IDS
from delta_outbox.operations.inspection import rows_of
from delta_outbox.railway.routing import LeadsNowhere
from delta_outbox.workflow_engine import workflow_views as views
from delta_outbox.workflow_engine.derivation.follow_ups import KILLED
from delta_outbox.workflow_engine.derivation.moves import LateAnswer, move_of
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.migrations import (
    MOST_PLANS,
    Migration,
    is_meant,
    judged,
    migration,
    plan_of,
    refused_names,
)
from delta_outbox.workflow_engine.task_reader import TaskReader, holders, literals
from delta_outbox.workflow_engine.task_requests import (
    Selection,
    Targets,
    TaskRequest,
    task_request,
)

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

Row = Mapping[str, Any]
RowT = TypeVar("RowT", bound=Row)

CANCEL: Final = "cancel"
"""The kind of command that ends a stranded instance, which has no task to kill."""

DONE_BY: Final = {
    "accept_late": "accepted",
    "assign": "assigned",
    "cancel": "cancelled",
    "extend": "extended",
    "migrate": "migrated",
}
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
        kind: accept_late, assign, cancel, extend or migrate.
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
            "reasons": dict(Counter(str(one["refusal"]) for one in self.left_out)),
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
        open_ = _open_task(tasks)
        if open_ is not None and open_["third_party"] is not None:
            open_["third_party"] = self._third_party(open_)
        ended = [one for one in tasks if one["cause"] == KILLED]
        asked_of = [str(one["task_id"]) for one in (*ended, *([open_] if open_ else ()))]
        kills = views.kills(self._outbox, asked_of) if asked_of else []
        return {
            "instance": shown,
            "tasks": tasks,
            "attempts": attempts,
            "late_answers": late_answers_of(views.late_answers(self._outbox, key), tasks),
            "moves": moves_of(shown, tasks, attempts, kills),
            "unknown": unknown_of(tasks, attempts),
            "next": next_of(
                shown,
                tasks,
                kills=kills,
                held_back=self._held_back(open_) if open_ else None,
                assigned_to=self._holder(open_) if open_ else None,
            ),
        }

    def _third_party(self, task: Row) -> object:
        """Return who is asked by an open task: its third party may have another name by now."""
        newest = next(self._writes().last(), None)
        version = newest and Plan(newest.number, newest.plan).versions.get(task["workflow"])
        row = version.routing.tasks.get(task["task"]) if version else None
        return task["third_party"] if row is None else row["third_party"]

    def _writes(self) -> NumberedWrites:
        """Return the numbered writes of the rows of workflows."""
        outbox = self._outbox
        return NumberedWrites(outbox.spark, outbox.tables, writer=WORKFLOWS, clock=outbox.clock)

    def _held_back(self, task: Row) -> str | None:
        """Say why the third party of a task is not asked; None if it is."""
        if task["third_party"] is None:
            return None
        known = self._outbox.destinations.read()
        if task["third_party"] in known.paused:
            return "paused"
        return "breaker" if task["third_party"] in known.breakers else None

    def _holder(self, task: Row) -> str | None:
        """Return who takes care of an item."""
        if task["held_by"] != TO_DO:
            return None
        found = holders(self._outbox.spark, self._outbox.statements, [str(task["task_id"])])
        return found.get((task["task_id"], task["arrival"]))

    def cancel(
        self, instances: Sequence[str] | None = None, **selected: Unpack[Selection]
    ) -> TasksReport:
        """End open instances by the default exit of their workflow: the task at which each stands
        is killed. A call that is in flight is finished; if it decides, its instance goes on. A
        stranded instance that is named ends without an event: nothing follows from that.

        Args:
            instances: business keys, or keys among those of all workflows; any if left out.
            selected: as `Selection` says; instances, a workflow or a third party must be named.

        Raises:
            WrongUsage: arguments break rules, or nothing says which instances are meant.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        return self.perform(task_request("cancel", instances=instances, **selected))

    def accept_late(
        self,
        instances: Sequence[str] | None = None,
        *,
        late_task: str | None = None,
        **selected: Unpack[Selection],
    ) -> TasksReport:
        """Let open instances go on by an answer that came too late: the task at which each stands
        is ended, and what follows is what the answer would have led to in time. Left out are those
        that have no late answer, or go on by it already, and those whose task is attempted, or may
        have acted without a known result.

        Args:
            instances: business keys, or keys among those of all workflows; any if left out.
            late_task: only answers to this task of the workflow; it must be named where an instance
                has late answers to several.
            selected: as `Selection` says; instances, a workflow or a third party must be named.

        Raises:
            WrongUsage: arguments break rules, or nothing says which instances are meant.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        given = {"instances": instances, "late_task": late_task, **selected}
        return self.perform(task_request("accept_late", **given))

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

    def migrate(
        self,
        instances: Sequence[str] | None = None,
        *,
        to_version: int,
        tasks: Mapping[str, str],
        from_version: int | None = None,
        **selected: Unpack[Selection],
    ) -> TasksReport:
        """Move open instances of a workflow to another of its versions: the task at which each
        stands is ended, and it goes on at the task that is mapped, by the routes of that version.
        Visits are counted on, so no identifier is used twice. Left out are those whose task is not
        mapped, or is attempted, or may have acted without a known result, and those that cannot go
        by the version, or would get an identifier that is known.

        Args:
            instances: business keys, or keys among those of all workflows; any if left out.
            to_version: by which they go on, as people count; the newest rows that had it count.
            tasks: by the task at which an instance stands, that at which it goes on.
            from_version: only instances that go by this one; by any other one if left out.
            selected: as `Selection` says; the workflow must be named.

        Raises:
            WrongUsage: arguments break rules, or the version does not have a task.
            UnknownVersion: the workflow has never been in force in this version.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        request = task_request("migrate", instances=instances, **selected)
        asked = migration(
            workflow=request.workflow,
            to_version=to_version,
            tasks=tasks,
            from_version=from_version,
        )
        return self.perform(request, lambda targets: self._migrated(targets, asked))

    def _migrated(self, targets: Targets, asked: Migration) -> Targets:
        """Return what a migration is about, with where each instance would go on, or why not."""
        outbox = self._outbox
        plans = (Plan(one.number, one.plan) for one in self._writes().last(MOST_PLANS))
        plan = plan_of(asked, plans)
        is_named = targets.request.instances is not None
        rows = [one for one in targets.rows if is_meant(one, asked, is_named=is_named)]
        places = [(one["event_id"], one["arrival"]) for one in rows if one["refusal"] is None]
        tasks = TaskReader(outbox.spark, outbox.tables, clock=outbox.clock).read(places)
        found = judged(rows, asked, plan, tasks)
        known = self._known([one["to_task_id"] for one in found if one["refusal"] is None])
        routing = plan.versions[asked.workflow].routing
        return replace(targets, rows=refused_names(found, known, routing))

    def _known(self, ids: Collection[str]) -> Set[str]:
        """Return which ids an event has, or had before it was purged."""
        if not ids:
            return set()
        tables, among = self._outbox.tables, f"event_id in ({literals(set(ids))})"
        rows = self._outbox.spark.sql(
            f"select event_id from {tables.state} where {among} "
            f"union select event_id from {tables.purged} where {among}"
        ).toArrow()
        return set(rows["event_id"].to_pylist())

    def perform(
        self, request: TaskRequest, narrow: Callable[[Targets], Targets] = lambda found: found
    ) -> TasksReport:
        """Expand a request, and append it unless it is a dry run.

        Args:
            request: checked.
            narrow: says where instances go on, and leaves out what cannot.

        Raises:
            WrongUsage: it is about more tasks than one request may be.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        self._outbox.refresh(planned_by=self._outbox.worker_id)
        targets = narrow(Targets.of(self._outbox, request))
        found = targets.documents()
        tasks = [one for one in found if not one["refusal"]]
        left_out = [one for one in found if one["refusal"]]
        without = self._without_task(request, found)
        stranded = [one for one in without if not one["refusal"]]
        tasks += stranded
        left_out += [one for one in without if one["refusal"]]
        is_appended = bool(tasks) and not request.dry_run
        if is_appended:
            targets.append(self._given_up(stranded))
            self._outbox.apply_commands_if_alone()
        return TasksReport(
            kind=request.kind,
            tasks=tasks,
            left_out=left_out,
            command_id=targets.command_id if is_appended else None,
        )

    def _without_task(self, request: TaskRequest, found: Sequence[Row]) -> list[dict[str, Any]]:
        """Return the tasks and instances that a request names, and that it finds open no more; of
        those it gets a stranded one that is to be cancelled.
        """
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
        named = {one["instance_key"]: one for name in names for one in [self._named(name, rows)]}
        keys = {one["instance_key"] for one in found}
        columns = (
            *("workflow", "instance", "instance_key", "state", "task", "task_id"),
            *("last_task_id", "expires_at", "problem"),
        )
        return unknown + [
            {
                **{name: one[name] for name in (*columns, "started_at")},
                "refusal": _why_none(request, one),
            }
            for key, one in named.items()
            if key not in keys
        ]

    def _given_up(self, stranded: Sequence[Row]) -> list[dict[str, Any]]:
        """Return what a command says of stranded instances: the last task of each."""
        if not stranded:
            return []
        tables = self._outbox.tables
        keys = {one["last_task_id"]: one["instance_key"] for one in stranded}
        found = rows_of(
            self._outbox.spark.sql(
                "select event_id, min(arrival) as arrival, min(destination) as destination "
                f"from {tables.state} where event_id in ({literals(keys)}) "
                f"and {reserved('event_type')} group by event_id"
            )
        )
        return [
            {
                **one,
                "kind": CANCEL,
                "lifecycle": 0,
                "arguments": json.dumps({"instance": keys[one["event_id"]]}),
            }
            for one in found
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
            if not why and views.was_purged(self._outbox, instance):
                why = " It has ended, and was purged."
            raise UnknownInstance(f"There is no instance {instance!r}.{why}")
        if len({row["workflow"] for row in found}) > 1:
            names = ", ".join(sorted({str(row["workflow"]) for row in found}))
            raise SeveralInstances(f"Several workflows have an instance {instance!r}: {names}.")
        return dict(found[0])


def _why_none(request: TaskRequest, instance: Row) -> str | None:
    """Say why a request cannot have an instance that has no open task; None if it can."""
    kind = request.kind
    match instance["state"]:
        case "ended":
            anew = "; an event must start another one" if kind == "accept_late" else ""
            how = f"with {instance['exit']}" if instance["exit"] else "without an event"
            return f"has ended {how}{anew}"
        case "stranded":
            return None if kind == "cancel" and request.is_of_names else "is stranded"
    return "is between two tasks"


# twin: macros/requests/last_late_answers.sql::last_late_answers
def late_answers_of(answers: Sequence[Row], tasks: Sequence[Row]) -> list[dict[str, Any]]:
    """Return late answers with whether an operator may let the instance go on by each: by the first
    one to the last visit of a task that nobody has decided, once.

    Args:
        answers: rows of `late_answers`, of one instance, in their order.
        tasks: of the instance, in their order.
    """
    answered = {one["task_id"] for one in answers}
    last: dict[str, str] = {}
    for one in tasks:
        if one["cause"] == "decided":
            last.pop(one["task"], None)
        elif one["cause"] in ("expired", "uncertain") and one["task_id"] in answered:
            last[one["task"]] = one["task_id"]
    open_ = _open_task(tasks)
    offered = set(last.values()) - {*(open_["accepted"] or ())} if open_ else set[str]()
    found = []
    for one in answers:
        found.append({**one, "may_be_accepted": one["task_id"] in offered})
        offered.discard(one["task_id"])
    return found


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
        or (
            one["task_id"] in unsure
            and (one["delivery_state"] in OPEN_STATES or one["cause"] == KILLED)
        )
    ]


def moves_of(
    instance: Row, tasks: Sequence[Row], attempts: Iterable[Row], kills: Iterable[Row]
) -> list[dict[str, Any]]:
    """Return where operators have let an instance go on elsewhere: by whom, why, from where and
    where to, in their order.

    Args:
        instance: a row of `workflow_instances`.
        tasks: of it.
        attempts: of them.
        kills: the commands that were to end them.
    """
    applied = {one["command_id"] for one in attempts if one["command_id"]}
    by_task = {one["event_id"]: one for one in kills if one["command_id"] in applied}
    ends = (instance,) if instance["exit"] else ()
    after = {one["last_task_id"]: one for one in (*tasks, *ends) if one["last_task_id"]}
    found = []
    for one in tasks:
        command = by_task.get(one["task_id"])
        if command is None or one["cause"] != KILLED:
            continue
        try:
            move = move_of(command["arguments"])
        except LeadsNowhere:
            continue
        if move is None:
            continue
        to = after.get(one["task_id"])
        late = move if isinstance(move, LateAnswer) else None
        found.append(
            {
                "from_task": one["task"],
                "from_version": one["version"],
                "to_task": None if to is None or to is instance else to["task"],
                "to_event": instance["exit"] if to is instance else None,
                "to_version": None if to is None else to["version"],
                "is_uncertain": to is not None and to["last_cause"] != KILLED,
                "late_task_id": late and late.task_id,
                "late_outcome": late and late.outcome,
                "actor": command["actor"],
                "reason": command["reason"],
                "at": one["changed_at"],
                "command_id": command["command_id"],
            }
        )
    return found


def _open_task(tasks: Iterable[RowT]) -> RowT | None:
    return next((one for one in tasks if one["delivery_state"] in OPEN_STATES), None)


def next_of(
    instance: Row,
    tasks: Sequence[Row],
    *,
    kills: Iterable[Row] = (),
    held_back: str | None = None,
    assigned_to: str | None = None,
) -> dict[str, Any] | None:
    """Return what happens next to an instance, when, and who must do something; None if it has
    ended.

    Args:
        instance: a row of `workflow_instances`.
        tasks: of it.
        kills: commands that end tasks, of the open one among others.
        held_back: why its third party is not asked: `paused` or `breaker`.
        assigned_to: who takes care of its item.
    """
    if instance["state"] == "ended":
        return None
    found: dict[str, Any] = dict.fromkeys(
        (
            *("what", "task_id", "title", "at", "due_at", "expires_at", "by", "roles", "problem"),
            *("third_party", "asked", "held_back", "assigned_to"),
        )
    )
    open_ = _open_task(tasks)
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
        "third_party": open_["third_party"],
        "asked": next(
            (
                {name: one[name] for name in ("actor", "reason", "command_id")}
                for one in kills
                if one["event_id"] == open_["task_id"]
            ),
            None,
        ),
    }
    is_attempted = open_["delivery_state"] == State.CLAIMED and open_["held_by"] != TO_DO
    if found["asked"] and not is_attempted:
        return {**found, "what": "ends"}
    if open_["held_by"] == TO_DO:
        roles = str(open_["roles"] or "").split("|")
        item = {"what": "answer", "roles": roles, "at": None, "assigned_to": assigned_to}
        return {**found, **item}
    if is_attempted:
        return {**found, "what": "attempt under way", "by": open_["held_by"]}
    if open_["category"] == "to_do":
        return {**found, "what": "item opens"}
    return {**found, "what": "attempt", "held_back": held_back}
