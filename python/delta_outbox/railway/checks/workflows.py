"""Rules of a workflow as a whole: its names, its start event, its routes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter

from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.railway.checks.shared_checks import (
    AnyWorkflow,
    Finding,
    has_text,
    template,
)
from delta_outbox.railway.contracts import Contract
from delta_outbox.railway.graph import Event, Route, fields_of
from delta_outbox.railway.identifiers import OF_TASKS
from delta_outbox.railway.names import is_plain
from delta_outbox.railway.tasks import AnyTask, Task


def kinds(workflow: AnyWorkflow) -> Iterator[Finding]:
    """Each argument is of a kind that the other rules can read."""
    for name, kind, words in _KINDS:
        value: object = getattr(workflow, name)
        if not isinstance(value, kind):
            yield "wrong_kind", f"`{name}` is {value!r}.", f"Write `{name}={words}`."
    routes: object = workflow.routes
    if not _is_task(workflow.first):
        yield (
            "first_no_task",
            f"`first` is {workflow.first!r}, which is no class of a task.",
            "Write the class itself, such as `first=ReserveStock`: no text, and no object of it.",
        )
    for one in routes if isinstance(routes, tuple) else ():
        if not isinstance(one, Route):
            yield "route_no_task", f"{one!r} is no route.", "Write `route(Task, {...})`."
        elif not _is_task(one.task):
            yield (
                "route_no_task",
                f"a route is of {one.task!r}, which is no class of a task.",
                "Write the class itself, `route(ReserveStock, {...})`: no text, no object of it.",
            )
        elif not isinstance(getattr(one, "to", None), Mapping):
            yield (
                "route_no_task",
                f"the route of {one.task.__name__} is {one.to!r}.",
                f"Write `route({one.task.__name__}, {{Outcome.DONE: next, ...}})`.",
            )


_KINDS: Final = (
    ("name", str, "'...'"),
    ("starts_on", str, "'...'"),
    ("instance", str, "'{...}'"),
    ("title", str, "'...'"),
    ("version", int, "1"),
    ("lease", timedelta, "timedelta(...)"),
    ("start", type, "Class"),
    ("default_exit", Event | None, "Event(event_type='...')"),
    ("routes", tuple, "(route(Task, {...}), ...)"),
)


def _is_task(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Task)


def names(workflow: AnyWorkflow) -> Iterator[Finding]:
    """A workflow, its tasks and its event types have names that rows can carry."""
    if not is_plain(workflow.name):
        yield (
            "workflow_name",
            f"'{workflow.name}' is no name.",
            "Use lower-case words joined by `_`.",
        )
    if workflow.version < 1:
        yield "version", f"version is {workflow.version}.", "Count versions from 1."
    if not workflow.starts_on.strip() or workflow.starts_on.startswith(RESERVED):
        yield (
            "starts_on",
            f"'{workflow.starts_on}' cannot be the type of a start event.",
            f"Name a domain event; types that begin with '{RESERVED}' belong to tasks.",
        )
    ends = [target for to in workflow.table.values() for target in to.values()]
    for event in [*ends, workflow.default_exit]:
        if isinstance(event, Event) and (
            not has_text(event.event_type) or event.event_type.startswith(RESERVED)
        ):
            yield (
                "event_type",
                f"'{event.event_type}' cannot be the type of a domain event.",
                f"Name the event; types that begin with '{RESERVED}' belong to tasks.",
            )


def start_event(workflow: AnyWorkflow) -> Iterator[Finding]:
    """The start event has fields, and `instance` is made of them."""
    known = fields_of(workflow.start)
    if not known:
        yield (
            "start",
            f"start is {workflow.start!r}, which has no fields.",
            "Give a dataclass or a pydantic model.",
        )
        return
    taken = sorted(OF_TASKS & set(known))
    if taken:
        yield (
            "start_fields",
            f"the start event has the fields {taken}, which identifiers use for other things.",
            "Rename them in the class; an alias may keep the name in the payload.",
        )
    why = None
    try:
        if not Contract(json.dumps(TypeAdapter(workflow.start).json_schema())).is_readable:
            why = (
                "what pydantic makes of it is no JSON Schema, such as a pattern with \\p{L}, "
                "or has a pattern for names, one that looks around, or a rule about fields that no "
                "other rule has named"
            )
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        why = str(error).splitlines()[0]
    if why is not None:
        yield (
            "start_no_schema",
            f"the start event cannot be told to others: {why}.",
            "Use types that JSON has, and patterns that Python's `re` and pydantic's engine read.",
        )
    yield from template("instance", workflow.instance, {**known, "event_id": str})


def routes_once(workflow: AnyWorkflow) -> Iterator[Finding]:
    """Each task has one route, and a name of its own."""
    if not workflow.routes:
        yield "routes", "it has no routes.", "Add `route(Task, {...})` for each task."
    classes = [one.task for one in workflow.routes]
    for task in dict.fromkeys(classes):
        if classes.count(task) > 1:
            yield (
                "route_twice",
                f"{task.task_name()} has {classes.count(task)} routes.",
                "Put all its outcomes into one.",
            )
    named: dict[str, AnyTask] = {}
    for task in dict.fromkeys(classes):
        other = named.setdefault(task.task_name(), task)
        if other is not task:
            yield (
                "task_name_twice",
                f"two classes are called {task.task_name()}.",
                "Rename one of them.",
            )
    if workflow.routes and workflow.first not in classes:
        yield (
            "first_without_route",
            f"it begins with {workflow.first.task_name()}, which has no route.",
            f"Add `route({workflow.first.__name__}, {{...}})`.",
        )
