"""The events that tell of items: `todo.opened` and `todo.due`.

An item is told to be due by the numbered write whose mark passes its instant: by the one that
opens it, if that has come already, else by a later one. Marks only move on, so it is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from delta_outbox.core.instants import iso_text
from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.railway.rows import Row
from delta_outbox.workflow_engine.derivation.events import NewEvent, TaskEvent, json_bytes
from delta_outbox.workflow_engine.derivation.plans import Plans

OPENED: Final = "todo.opened"
DUE: Final = "todo.due"
# How often items are told to be due: to find those that are still open takes about a second.
DUE_EVERY: Final = timedelta(seconds=10)

Link = Callable[[str], str]
"""Returns the signed link to an item, from the slash behind the host on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DueMark:
    """How far items have been told to be due: all before an instant, and of those at the instant
    the ones up to an id.

    Args:
        at: the instant.
        through: the last id; None: all of that instant.
    """

    at: datetime
    through: str | None = None

    @property
    def key(self) -> tuple[datetime, bool, str]:
        """Return what marks are ordered by; items too, as (due_at, False, task_id)."""
        return self.at, self.through is None, self.through or ""

    def has_passed(self, instant: datetime) -> bool:
        """Say whether all items are among them that are due by an instant.

        Args:
            instant: the last that counts.
        """
        return DueMark(at=instant).key <= self.key

    def passes(self, due_at: datetime, task_id: str) -> bool:
        """Say whether an item is among them.

        Args:
            due_at: of the item.
            task_id: of the item.
        """
        return (due_at, False, task_id) <= self.key


@dataclass(frozen=True, kw_only=True, slots=True)
class DueItem:
    """An item that was open when it was found to be due.

    Args:
        task_id: its identifier.
        arrival: the commit that brought its event.
        expires_at: when its claim ends, None if nobody has claimed it.
        assigned_to: who takes care of it, None if nobody does.
    """

    task_id: str
    arrival: int
    expires_at: datetime | None = None
    assigned_to: str | None = None

    def as_plan(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "task_id": self.task_id,
            "arrival": self.arrival,
            "expires_at": self.expires_at and iso_text(self.expires_at),
            "assigned_to": self.assigned_to,
        }

    @classmethod
    def of(cls, plan: Mapping[str, Any]) -> DueItem:
        """Return what `as_plan` has returned.

        Args:
            plan: that.
        """
        until = plan["expires_at"]
        return cls(**{**plan, "expires_at": until and datetime.fromisoformat(until)})


def due_by(at: datetime) -> datetime:
    """Return the instant up to which items are told to be due at a moment: a whole multiple of
    `DUE_EVERY`.

    Args:
        at: the moment, in UTC.
    """
    return at - (at - datetime.min.replace(tzinfo=at.tzinfo)) % DUE_EVERY


def told_of_new(
    opened: Iterable[TaskEvent], plans: Plans, mark: DueMark, at: datetime, link: Link | None
) -> tuple[NewEvent, ...]:
    """Return the events that tell of items that are written now.

    Args:
        opened: tasks that are written, items or not.
        plans: among them those of the tasks.
        mark: of the numbered write.
        at: when it was planned.
        link: makes links; None: there is no secret to sign them with.
    """
    made: list[NewEvent] = []
    for task in opened:
        row = _row_of(task, plans)
        if row is None or _is_over(task.expires_at, at):
            continue
        its = _link_of(task, row, link)
        if OPENED in event_types(row):
            made.append(_event(OPENED, task, row, task.created_at, link=its))
        if task.due_at is not None and mark.passes(task.due_at, task.task_id):
            made.append(_event(DUE, task, row, at, link=its))
    return tuple(made)


def told_of_due(
    items: Iterable[tuple[DueItem, TaskEvent]], plans: Plans, at: datetime, link: Link | None
) -> tuple[NewEvent, ...]:
    """Return the events that tell that items are due which were opened before.

    Args:
        items: that are due.
        plans: among them those of the items.
        at: when the numbered write was planned.
        link: makes links; None: there is no secret to sign them with.
    """
    made: list[NewEvent] = []
    for item, task in items:
        row = _row_of(task, plans)
        until = task.expires_at and (item.expires_at or task.expires_at)
        if row is None or _is_over(until, at):
            continue
        its = _link_of(task, row, link)
        made.append(_event(DUE, task, row, at, link=its, until=until, assigned_to=item.assigned_to))
    return tuple(made)


def event_types(row: Row) -> tuple[str, ...]:
    """Return the types of the events that tell of items.

    Args:
        row: of the items, as their version has it.
    """
    told = ((OPENED, row.get("tells_opened")), (DUE, row["due_seconds"]))
    return tuple(event_type for event_type, cell in told if cell)


def item_event_id(event_type: str, task_id: str) -> str:
    """Return the id of an event that tells of an item; no producer may use it.

    It is the key of no instance, because the name of a workflow has no dot.

    Args:
        event_type: of the event.
        task_id: of the item.
    """
    return f"{RESERVED}{event_type}/{task_id}"


def _row_of(task: TaskEvent, plans: Plans) -> Row | None:
    """Return what the version of an instance says of an item; None if it is none."""
    plan = plans.get(task.plan)
    version = plan and plan.versions.get(task.workflow)
    if not version or not version.routing.is_to_do(task.place.task):
        return None
    return version.routing.tasks[task.place.task]


def _is_over(until: datetime | None, at: datetime) -> bool:
    return until is not None and until <= at


def _link_of(task: TaskEvent, row: Row, link: Link | None) -> str | None:
    return link(task.task_id) if link is not None and row.get("sends_link") else None


def _event(
    event_type: str,
    task: TaskEvent,
    row: Row,
    at: datetime,
    *,
    link: str | None,
    until: datetime | None = None,
    assigned_to: str | None = None,
) -> NewEvent:
    until = until or task.expires_at
    body = {
        "task_id": task.task_id,
        "workflow": task.workflow,
        "version": task.version,
        "instance": task.instance,
        "task": task.place.task,
        "title": row["title"],
        "visit": task.place.visit,
        "roles": row["roles"].split("|"),
        "opened_at": iso_text(task.created_at),
        "due_at": task.due_at and iso_text(task.due_at),
        "expires_at": until and iso_text(until),
        "assigned_to": assigned_to,
        "link": link,
    }
    return NewEvent(
        event_id=item_event_id(event_type, task.task_id),
        event_type=event_type,
        payload=json_bytes(body),
        created_at=at,
        ordering_key=task.task_id,
    )
