"""What an operator asks of open tasks and instances: typed, checked values, and one selection for
all of it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

import pyarrow as pa

from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.literals import instant_literal
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.operations.command_log import append_commands
from delta_outbox.operations.inspection import rows_of
from delta_outbox.operations.request_expansion import pinned_state

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

# twin: macros/requests/perform_task_request.sql::perform_task_request
MOST_TASKS: Final = 10_000  # of one request
LONGEST: Final = 1_000_000_000  # seconds

_REQUEST: Final = "outbox_task_request"
_ROW: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "command_id", "actor", "reason")),
        *((name, pa.string()) for name in ("workflow", "task", "third_party", "role")),
        *((name, pa.string()) for name in ("assignee", "late_task")),
        ("instances", pa.list_(pa.string())),
        ("task_ids", pa.list_(pa.string())),
        *((name, pa.bool_()) for name in ("only_items", "only_unassigned")),
        ("extend_to", pa.timestamp("us", tz="UTC")),
        ("extend_by_seconds", pa.int32()),
    ]
)
"""A request as one row (macro task_request_row): the way its values reach the SQL."""

_OF_TASK: Final = ("event_id", "arrival", "destination", "lifecycle", "arguments")
"""What a command says of a task."""

_SHOWN: Final = (
    *("workflow", "instance", "instance_key", "state", "task", "third_party", "started_at"),
    *("expires_at", "expires_then", "assigned_to", "late_task_id", "late_outcome", "goes_to"),
    *("version", "to_version", "to_task", "to_task_id", "refusal"),
)
_KIND_OF_COMMAND: Final = {
    **dict.fromkeys(("accept_late", "cancel", "migrate"), "kill"),
    "assign": "assign",
    "extend": "extend",
}


def command_of(kind: str) -> str:
    """Return how the command line calls a kind of request.

    Args:
        kind: of the request.
    """
    return kind.replace("_", "-")


class Selection(TypedDict):
    """Which open tasks are meant, by whom, and why. All that is given must hold.

    workflow, task, third_party: only open tasks of these.
    task_ids: only the tasks of these identifiers.
    role: only items that it may answer.
    only_items: no tasks of third parties.
    since, until: only of instances that were started at the first instant or later, and before the
        second.
    actor, reason: who asks, and why, one line each.
    dry_run: only show it; True if left out.
    """

    workflow: NotRequired[str | None]
    task: NotRequired[str | None]
    third_party: NotRequired[str | None]
    task_ids: NotRequired[Sequence[str] | None]
    role: NotRequired[str | None]
    only_items: NotRequired[bool]
    since: NotRequired[datetime | None]
    until: NotRequired[datetime | None]
    actor: str
    reason: str
    dry_run: NotRequired[bool]


# twin: macros/requests/check_task_request.sql::check_task_request
@dataclass(frozen=True, kw_only=True)
class TaskRequest:
    """What an operator asks of open tasks, checked.

    Args:
        kind: extend or assign; or what kills the task at which an instance stands: accept_late,
            cancel, migrate.
        actor: who asks.
        reason: why, in the actor's words.
        instances: only of these; None for any.
        workflow: only of this one; None for any.
        task: only this one of the workflow; None for any.
        third_party: only of this one; None for any.
        task_ids: only of these identifiers; None for any.
        role: only items that it may answer; None for any.
        only_items: no tasks of third parties.
        since: only of instances started at this instant or later.
        until: only of instances started before this instant.
        to: when they expire then; None where it is counted from when they do.
        by_seconds: by how much they expire later; None where `to` says when.
        assignee: who is to hold the items, empty for nobody; None if nobody is asked to.
        only_unassigned: leave alone what somebody else holds.
        late_task: of `accept_late`, only answers to this task; None for any.
        dry_run: show what would be asked for, and write nothing.
    """

    kind: str
    actor: str
    reason: str
    instances: tuple[str, ...] | None = None
    workflow: str | None = None
    task: str | None = None
    third_party: str | None = None
    task_ids: tuple[str, ...] | None = None
    role: str | None = None
    only_items: bool = False
    since: datetime | None = None
    until: datetime | None = None
    to: datetime | None = None
    by_seconds: int | None = None
    assignee: str | None = None
    only_unassigned: bool = False
    late_task: str | None = None
    dry_run: bool = True

    @property
    def is_of_names(self) -> bool:
        """Say whether it is about whatever instances are named, of all workflows or of one."""
        of_tasks = (self.task, self.third_party, self.task_ids, self.role, self.since, self.until)
        return self.instances is not None and not self.only_items and not any(of_tasks)

    @property
    def started(self) -> str:
        """Return the condition on when an instance was started; there are only numbers in it."""
        conditions = []
        if self.since is not None:
            conditions.append(f"t.started_at >= {instant_literal(self.since)}")
        if self.until is not None:
            conditions.append(f"t.started_at < {instant_literal(self.until)}")
        return " and ".join(conditions) or "true"


def task_request(
    kind: str,
    *,
    instances: object = None,
    workflow: object = None,
    task: object = None,
    third_party: object = None,
    task_ids: object = None,
    role: object = None,
    only_items: object = False,
    since: object = None,
    until: object = None,
    to: object = None,
    by_seconds: object = None,
    assignee: object = None,
    only_unassigned: object = False,
    late_task: object = None,
    actor: object = None,
    reason: object = None,
    dry_run: object = True,
) -> TaskRequest:
    """Check a request about open tasks.

    Args:
        kind: accept_late, assign, cancel, extend or migrate.
        instances: business keys, or keys among those of all workflows.
        workflow: only of this one.
        task: only this one of the workflow.
        third_party: only of this one.
        task_ids: only of these identifiers.
        role: only items that it may answer.
        only_items: no tasks of third parties.
        since: of instances started at this instant or later; a datetime with an offset.
        until: of instances started before this instant.
        to: when they expire then; of `extend` only.
        by_seconds: by how much they expire later, instead of `to`.
        assignee: who is to hold the items, one line; empty for nobody; of `assign` only.
        only_unassigned: leave alone what somebody else holds; of `assign` only.
        late_task: only answers to this task; of `accept_late` only.
        actor: who asks, one line.
        reason: why, one line.
        dry_run: only show it.

    Raises:
        WrongUsage: arguments break rules; all of them are named.
    """
    given = Arguments()
    checked: dict[str, Any] = {
        "instances": given.ids("instances", instances),
        "task_ids": given.ids("task_ids", task_ids),
        "workflow": given.part("workflow", workflow),
        "task": given.part("task", task),
        "third_party": given.part("third_party", third_party),
        "role": given.part("role", role),
        "late_task": given.part("late_task", late_task),
        "since": given.instant("since", since),
        "until": given.instant("until", until),
        "to": given.instant("to", to),
        "by_seconds": given.whole("by_seconds", by_seconds, 1, LONGEST),
    }
    if all(one is None for one in (instances, task_ids, workflow, third_party, role)):
        given.refuse(
            "instances", "must be named, or `task_ids`, a workflow, a third party or a role", None
        )
    if task is not None and workflow is None:
        given.refuse("workflow", "must be named with a task", None)
    if checked["since"] and checked["until"] and checked["until"] <= checked["since"]:
        given.refuse("until", "must be after `since`", f"{checked['since']} to {checked['until']}")
    if kind == "extend" and (to is None) == (by_seconds is None):
        came = "both" if to is not None else None
        given.refuse("to", "or `by_seconds` must be given, one of them", came)
    checked["only_items"] = given.flag("only_items", only_items)
    if kind == "assign":
        is_nobody = assignee == ""
        checked["assignee"] = "" if is_nobody else given.line("assignee", assignee, MAX_ACTOR)
        checked["only_unassigned"] = given.flag("only_unassigned", only_unassigned)
    checked |= {
        "reason": given.line("reason", reason, MAX_TEXT),
        "actor": given.line("actor", actor, MAX_ACTOR),
        "dry_run": given.flag("dry_run", dry_run),
    }
    if given.problems:
        raise WrongUsage(f"{command_of(kind)}: {'; '.join(given.problems)}.")
    return TaskRequest(kind=kind, **checked)


@dataclass(frozen=True, kw_only=True)
class Targets:
    """The open tasks that a request is about (macro task_targets).

    Args:
        outbox: where they are.
        request: what is asked.
        command_id: of the command to be.
        rows: one per task; the column refusal says why a task is not to be had.
    """

    outbox: Store
    request: TaskRequest
    command_id: str
    rows: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, outbox: Store, request: TaskRequest) -> Targets:
        """Expand a request over all that was committed before the last refresh.

        Args:
            outbox: where to ask.
            request: checked.

        Raises:
            WrongUsage: it is about more tasks than one request may be.
        """
        command_id = uuid.uuid4().hex
        _open_request(outbox, request, command_id)
        text = outbox.statements.fill(
            f"{request.kind}_targets",
            state=pinned_state(outbox),
            request=_REQUEST,
            is_named=str(request.instances is not None).lower(),
            started=request.started,
            now=outbox.now_literal(),
        )
        rows = rows_of(outbox.spark.sql(text).limit(MOST_TASKS + 1))
        if len(rows) > MOST_TASKS:
            raise WrongUsage(
                f"{command_of(request.kind)}: more than {MOST_TASKS} tasks are meant.",
                remedy="Narrow it with --since and --until, and ask part after part.",
            )
        rows.sort(key=lambda row: (str(row["started_at"]), str(row["instance_key"])))
        return cls(outbox=outbox, request=request, command_id=command_id, rows=rows)

    def documents(self) -> list[dict[str, Any]]:
        """Return the tasks as they are shown; those that the request gets come first."""
        found = [
            {"task_id": row["event_id"], **{name: row[name] for name in _SHOWN if name in row}}
            for row in self.rows
        ]
        return sorted(found, key=lambda row: row["refusal"] is not None)

    # twin: macros/requests/command_rows.sql::command_rows
    def append(self, others: Sequence[Mapping[str, Any]] = ()) -> None:
        """Append the command: one row for each task that the request gets.

        Args:
            others: what it says of tasks that have ended, each with a kind of its own.
        """
        shared = {
            "command_id": self.command_id,
            "kind": _KIND_OF_COMMAND[self.request.kind],
            "actor": self.request.actor,
            "reason": self.request.reason,
        }
        got = (row for row in self.rows if row["refusal"] is None)
        rows = [{name: row[name] for name in _OF_TASK} for row in got]
        append_commands(self.outbox, [{**shared, **row} for row in (*rows, *others)])
        logger.info(
            "command_appended", extra={"command_id": self.command_id, "kind": self.request.kind}
        )


def _open_request(outbox: Store, request: TaskRequest, command_id: str) -> None:
    """Let the session know a request under a name of ours."""
    row = {
        "kind": _KIND_OF_COMMAND[request.kind],
        "command_id": command_id,
        "actor": request.actor,
        "reason": request.reason,
        "workflow": request.workflow,
        "task": request.task,
        "third_party": request.third_party,
        "role": request.role,
        "assignee": request.assignee,
        "late_task": request.late_task,
        "instances": None if request.instances is None else list(request.instances),
        "task_ids": None if request.task_ids is None else list(request.task_ids),
        "only_items": request.only_items,
        "only_unassigned": request.only_unassigned,
        "extend_to": request.to,
        "extend_by_seconds": request.by_seconds,
    }
    rows = pa.Table.from_pylist([row], schema=_ROW)
    outbox.spark.createDataFrame(rows).createOrReplaceTempView(_REQUEST)
