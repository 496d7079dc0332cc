"""Which instance a start event begins, or why it begins none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from delta_outbox.core.instants import iso_text
from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.core.settings import MAX_ID_BYTES
from delta_outbox.railway.contracts import DoesNotFit
from delta_outbox.railway.routing import Place, Routing
from delta_outbox.workflow_engine.derivation.events import (
    Origin,
    StartEvent,
    TaskEvent,
    instance_key,
    task_type,
)
from delta_outbox.workflow_engine.derivation.item_events import event_types, item_event_id
from delta_outbox.workflow_engine.derivation.plans import Version

MOST_VISITS: Final = 10**9
"""Identifiers are as long as at this visit when it is asked whether they are too long."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class WhyIgnored(StrEnum):
    """Why a start event has begun no instance."""

    PAYLOAD_REFUSED = "payload_refused"
    FIELD_MISSING = "field_missing"
    IDENTIFIER_REFUSED = "identifier_refused"
    SECOND_START = "second_start"
    IDENTIFIER_TAKEN = "identifier_taken"
    STARTS_ON_CHANGED = "starts_on_changed"


@dataclass(frozen=True, kw_only=True, slots=True)
class IgnoredStart:
    """A start event that has begun no instance of a workflow.

    Args:
        event_id: of the event.
        arrival: the commit that brought it.
        workflow: that it would have started.
        instance: that it would have begun, None if nobody can say.
        why: the reason.
        message: the same in a sentence, which names nothing of the payload.
    """

    event_id: str
    arrival: int
    workflow: str
    instance: str | None
    why: WhyIgnored
    message: str


class CannotBegin(Exception):
    """No instance can go by a version of a workflow with what its start event says.

    Args:
        why: the reason.
        message: the same in a sentence, which names nothing of the payload.
    """

    def __init__(self, why: WhyIgnored, message: str) -> None:
        super().__init__(message)
        self.why = why


def ignored(
    event: StartEvent, workflow: str, why: WhyIgnored, message: str, instance: str | None = None
) -> IgnoredStart:
    """Return the record of a start event that has begun no instance.

    Args:
        event: the start event.
        workflow: that it would have started.
        why: the reason.
        message: the same in a sentence.
        instance: that it would have begun, None if nobody can say.
    """
    return IgnoredStart(
        event_id=event.event_id,
        arrival=event.arrival,
        workflow=workflow,
        instance=instance,
        why=why,
        message=message,
    )


def begin(event: StartEvent, version: Version) -> TaskEvent | IgnoredStart:
    """Return the first task of the instance that a start event begins, or why there is none.

    What any later identifier would break is said now, when nothing has been done yet.

    Args:
        event: the start event.
        version: of a workflow that it starts.
    """
    routing = version.routing
    try:
        fields = fields_of(event.payload, version)
        instance = routing.instance(fields, event.event_id)
        check_names(routing, instance, fields)
    except CannotBegin as error:
        return ignored(event, routing.workflow, error.why, str(error))
    first = TaskEvent(
        workflow=routing.workflow,
        plan=version.plan,
        version=version.number,
        instance=instance,
        place=routing.first(),
        task_id="",
        origin=Origin(
            event_id=event.event_id,
            started_at=iso_text(event.since),
            payload=event.payload.decode(),
            ordering_key=event.ordering_key,
            partition_key=event.partition_key,
        ),
        fields=fields,
        created_at=event.since,
    )
    return named(first, routing)


def fields_of(payload: bytes, version: Version) -> dict[str, str]:
    """Return the fields of a start event that the identifiers of a version use.

    Args:
        payload: of the event.
        version: of the workflow.

    Raises:
        CannotBegin: its contract refuses the payload, or a field is missing.
    """
    try:
        body = version.contract.read(payload)
    except DoesNotFit as error:
        message = f"The payload is refused: {error}."
        raise CannotBegin(WhyIgnored.PAYLOAD_REFUSED, message) from error
    fields: dict[str, str] = {}
    for name in sorted(version.routing.fields):
        key = version.routing.start_fields[name]
        text = _text(body.get(key, version.contract.default(key)))
        if text is None:
            raise CannotBegin(
                WhyIgnored.FIELD_MISSING,
                f"Identifiers use '{key}', which is missing, or neither text nor a whole number.",
            )
        fields[name] = text
    return fields


def check_names(routing: Routing, instance: str, fields: Mapping[str, str]) -> None:
    """Refuse an instance if any identifier would break a rule, at whatever visit.

    Args:
        routing: of the version by which it goes.
        instance: its business key.
        fields: of the start event that identifiers use.

    Raises:
        CannotBegin: an identifier would be reserved, empty, too long or have control characters.
    """
    of_tasks = {
        task: routing.task_id(Place(task=task, visits={task: MOST_VISITS}), instance, fields)
        for task in routing.tasks
    }
    for task, text in of_tasks.items():
        if text.startswith(RESERVED):
            raise CannotBegin(
                WhyIgnored.IDENTIFIER_REFUSED,
                f"The identifier of {task} would begin with '{RESERVED}', as those of the "
                "events that end instances do.",
            )
    for what, text in _names(routing, instance, of_tasks):
        if not text.strip() or len(text.encode()) > MAX_ID_BYTES or _CONTROL.search(text):
            raise CannotBegin(
                WhyIgnored.IDENTIFIER_REFUSED,
                f"The identifier of {what} would be empty, be longer than {MAX_ID_BYTES} bytes or "
                "have control characters.",
            )


def named(task: TaskEvent, routing: Routing) -> TaskEvent:
    """Return a task with what its place and its instant decide: identifier, expiry, reminder.

    Args:
        task: with all else.
        routing: of its version.
    """
    name = task.place.task
    return replace(
        task,
        task_id=routing.task_id(task.place, task.instance, task.fields),
        expires_at=routing.expires_at(name, task.created_at),
        due_at=routing.due_at(name, task.created_at),
    )


def _text(value: Any) -> str | None:
    """Return what stands for a value in an identifier, None if it is no text and no whole number.

    A whole number may be written as 7.0, as JSON Schema has it.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _names(
    routing: Routing, instance: str, of_tasks: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield every text that would name a row of an instance, after what it names."""
    yield "the instance", instance
    yield "the instance", instance_key(routing.workflow, instance)
    for task, identifier in of_tasks.items():
        yield task, identifier
        yield task, task_type(routing.workflow, task)
        for event_type in event_types(routing.tasks[task]):
            yield task, item_event_id(event_type, identifier)
