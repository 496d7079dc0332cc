"""The rows of the log that derivation reads and makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from delta_outbox.core.instants import iso_text
from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.railway.routing import Place


@dataclass(frozen=True, kw_only=True, slots=True)
class StartEvent:
    """An event whose type starts a workflow, as the log has it.

    Args:
        event_id: of the event.
        event_type: of the event.
        payload: of the event.
        since: when it was appended; the age of its instance counts from then.
        arrival: the commit that brought it.
        ordering_key: of the event.
        partition_key: of the event.
    """

    event_id: str
    event_type: str
    payload: bytes
    since: datetime
    arrival: int
    ordering_key: str | None = None
    partition_key: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    """A row for the log of events. Equal news make equal rows, byte for byte.

    Args:
        event_id: of the row.
        event_type: of the row.
        payload: of the row.
        created_at: when what it follows from has happened.
        ordering_key: of the row.
        partition_key: of the row.
        metadata: of the row.
    """

    event_id: str
    event_type: str
    payload: bytes
    created_at: datetime
    ordering_key: str | None
    partition_key: str | None = None
    metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What an instance keeps of its start event.

    Args:
        event_id: of the event.
        started_at: when it was appended, ISO 8601.
        payload: of the event, as it was written.
        ordering_key: of the event.
        partition_key: of the event.
    """

    event_id: str
    started_at: str
    payload: str
    ordering_key: str | None
    partition_key: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Before:
    """The task that a task follows, and what has become of it.

    Args:
        task: its name.
        task_id: its identifier.
        cause: what has happened to it.
        outcome: that it has.
    """

    task: str
    task_id: str
    cause: str
    outcome: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEvent:
    """The event that is a task. It carries all that its instance has come to know.

    So a task can be called, and what follows it derived, from this one row and the rows of its
    plan, also when the start event has been purged.

    Args:
        workflow: its name.
        plan: number of the plan by which its instance goes: the one that it has started with, or
            was moved to.
        version: of the workflow, as people count.
        instance: of the workflow.
        place: where the instance stands.
        task_id: the task identifier, and the id of the event.
        origin: the start event.
        fields: of the start event that identifiers use.
        created_at: when what it follows from has happened.
        before: the task that it follows, None if it is the first.
        expires_at: when the task expires, None if never.
        due_at: of a To-Do: when somebody is reminded, None if nobody is.
        accepted: identifiers of earlier tasks of the instance whose late answers were accepted.
    """

    workflow: str
    plan: int
    version: int
    instance: str
    place: Place
    task_id: str
    origin: Origin
    fields: Mapping[str, str]
    created_at: datetime
    before: Before | None = None
    expires_at: datetime | None = None
    due_at: datetime | None = None
    accepted: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return the name of its instance among those of all workflows."""
        return instance_key(self.workflow, self.instance)

    @property
    def number(self) -> int:
        """Return the place of this row among those of its instance, from 1."""
        return sum(self.place.visits.values())

    def row(self) -> NewEvent:
        """Return the row of the log."""
        body = {
            "workflow": self.workflow,
            "plan": self.plan,
            "version": self.version,
            "instance": self.instance,
            "task": self.place.task,
            "visits": self.place.visits,
            "facts": self.place.facts,
            "fields": self.fields,
            "start": asdict(self.origin),
            "before": self.before and asdict(self.before),
            "expires_at": self.expires_at and iso_text(self.expires_at),
            "due_at": self.due_at and iso_text(self.due_at),
            "accepted": self.accepted,
        }
        return NewEvent(
            event_id=self.task_id,
            event_type=task_type(self.workflow, self.place.task),
            payload=json_bytes(body),
            created_at=self.created_at,
            ordering_key=self.key,
        )

    @classmethod
    def read(cls, event_id: str, payload: bytes, created_at: datetime) -> TaskEvent:
        """Return the task of a row that `row` has made.

        Args:
            event_id: of the row.
            payload: of the row.
            created_at: of the row.
        """
        body = json.loads(payload)

        def instant(name: str) -> datetime | None:
            return datetime.fromisoformat(body[name]) if body[name] else None

        return cls(
            workflow=body["workflow"],
            plan=body["plan"],
            version=body["version"],
            instance=body["instance"],
            place=Place(task=body["task"], visits=body["visits"], facts=body["facts"]),
            task_id=event_id,
            origin=Origin(**body["start"]),
            fields=body["fields"],
            created_at=created_at,
            before=Before(**body["before"]) if body["before"] else None,
            expires_at=instant("expires_at"),
            due_at=instant("due_at"),
            accepted=tuple(body.get("accepted", ())),
        )


def task_type(workflow: str, task: str) -> str:
    """Return the event type of a task; no producer may use it.

    Args:
        workflow: its name.
        task: its name.
    """
    return f"{RESERVED}{workflow}/{task}"


def instance_key(workflow: str, instance: str) -> str:
    """Return the name of an instance among those of all workflows.

    It is the ordering key of its tasks, and the id of the event that ends it.

    Args:
        workflow: its name.
        instance: of the workflow.
    """
    return f"{RESERVED}{workflow}/{instance}"


def json_bytes(value: Any) -> bytes:
    """Return a value as the one JSON text that every writer makes of it.

    Args:
        value: of JSON.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    # Half of a surrogate pair, which UTF-8 does not have, stays what it is in JSON: an escape.
    return text.encode(errors="backslashreplace")
