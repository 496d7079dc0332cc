"""The graph of a workflow: tasks, and where each of their outcomes leads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Generic

from pydantic import BaseModel, TypeAdapter

from delta_outbox.railway.identifiers import DEFAULT_INSTANCE, task_identifier
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Exit, OutcomeT
from delta_outbox.railway.tasks import Never, State, Task
from delta_outbox.railway.triggers import StartT, Trigger

LEASE = timedelta(minutes=2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A domain event that ends a workflow, and may start another.

    Args:
        event_type: of the event.
    """

    event_type: str


Target = type[Task[StartT, Any]] | Event
"""What an outcome leads to."""


@dataclass(frozen=True, slots=True)
class Route(Generic[StartT]):
    """Where the outcomes of one task lead; made by `route`."""

    task: type[Task[StartT, Any]]
    to: Mapping[Any, type[Task[StartT, Any]] | Event]


def route(
    task: type[Task[StartT, OutcomeT]], to: Mapping[OutcomeT, type[Task[StartT, Any]] | Event]
) -> Route[StartT]:
    """Say where each outcome of a task leads; a type checker knows whose outcomes they are.

    Args:
        task: the class.
        to: by outcome, the next task or the event that ends the workflow.
    """
    return Route(task, to)


@dataclass(frozen=True, slots=True)
class Leg(Generic[StartT]):
    """One line of the drawing: from a task to what follows.

    Args:
        task: where it begins.
        cause: `decided`, or what happened to the task: `faulted`, `expired`, `uncertain`.
        outcome: the member of the task's outcomes, None for the default exit.
        target: where it leads; None if it leads nowhere, which a check refuses.
    """

    task: type[Task[StartT, Any]]
    cause: str
    outcome: str | None
    target: type[Task[StartT, Any]] | Event | None


@dataclass(frozen=True, kw_only=True)
class Graph(Generic[StartT]):
    """Tasks and where they lead, checked or not; authors make a `Workflow`.

    Args:
        name: in snake case.
        starts_on: event type that starts an instance.
        start: what the payload of that event is parsed into: a dataclass or a pydantic model.
        first: the task that an instance begins with.
        routes: one per task.
        default_exit: where faults and expiries lead that no outcome is named for; None if each
            must be named.
        instance: template over the start event that tells instances apart; `{event_id}` is the id
            of the event itself.
        title: its name for people; made of `name` if empty.
        version: to be raised when the routes change.
        lease: how long a claim of a task lasts; every time limit is below it.
    """

    name: str
    starts_on: str
    start: type[StartT]
    first: type[Task[StartT, Any]]
    routes: tuple[Route[StartT], ...]
    default_exit: Event | None = None
    instance: str = DEFAULT_INSTANCE
    title: str = ""
    version: int = 1
    lease: timedelta = field(default=LEASE)

    @cached_property
    def table(self) -> Mapping[type[Task[StartT, Any]], Mapping[str, Target[StartT]]]:
        """Return, by task, where its outcomes lead."""
        return {
            one.task: {str(outcome): target for outcome, target in one.to.items()}
            for one in self.routes
        }

    @property
    def tasks(self) -> tuple[type[Task[StartT, Any]], ...]:
        """Return the tasks, in the order of their routes."""
        return tuple(self.table)

    def legs(self, task: type[Task[StartT, Any]]) -> Iterator[Leg[StartT]]:
        """Yield all that can become of a task: its outcomes, then fault, expiry, uncertainty.

        Args:
            task: of this workflow.
        """
        to = self.table[task]
        for outcome in task.outcomes():
            yield Leg(task, "decided", str(outcome), to.get(str(outcome)))
        for cause, chosen in self.fallbacks(task).items():
            if isinstance(chosen, Exit):
                yield Leg(task, cause, None, self.default_exit)
            else:
                yield Leg(task, cause, str(chosen), to.get(str(chosen)))

    @staticmethod
    def fallbacks(task: type[Task[StartT, Any]]) -> dict[str, Any]:
        """Return what is decided when a task is not: by cause, an outcome or `DEFAULT_EXIT`.

        Args:
            task: of this workflow.
        """
        found: dict[str, Any] = {}
        if issubclass(task, State):
            found["faulted"] = task.when_faulted
        if not isinstance(getattr(task, "expires", None), Never):
            found["expired"] = task.when_expired
        if issubclass(task, State):
            found["uncertain"] = getattr(task, "when_uncertain", DEFAULT_EXIT)
        return found

    def reachable(
        self,
        task: type[Task[StartT, Any]],
        *,
        follows: Callable[[Leg[StartT]], bool] = lambda leg: True,
    ) -> set[Target[StartT]]:
        """Return all that can come after a task; the task itself only if it lies on a loop.

        Args:
            task: of this workflow.
            follows: which legs count.
        """
        seen: set[Target[StartT]] = set()
        todo = [task]
        while todo:
            one = todo.pop()
            if one not in self.table:
                continue
            for leg in self.legs(one):
                if leg.target is not None and leg.target not in seen and follows(leg):
                    seen.add(leg.target)
                    if not isinstance(leg.target, Event):
                        todo.append(leg.target)
        return seen

    @property
    def ends(self) -> list[str]:
        """Return the event types that can end an instance, in order."""
        every = self.reachable(self.first)
        return sorted({one.event_type for one in every if isinstance(one, Event)})

    def task_id(self, task: type[Task[StartT, Any]], trigger: Trigger[StartT]) -> str:
        """Return the identifier of a task.

        Args:
            task: of this workflow.
            trigger: what triggered it.
        """
        return task_identifier(
            task.identifier,
            values_of(trigger.start),
            workflow=self.name,
            task=task.task_name(),
            instance=trigger.instance,
            visit=trigger.visit,
        )

    def parse(self, payload: bytes | str) -> StartT:
        """Return the payload of a start event.

        Args:
            payload: JSON.

        Raises:
            pydantic.ValidationError: it is not what `start` asks for.
        """
        return self._start_events.validate_json(payload)

    @cached_property
    def _start_events(self) -> TypeAdapter[StartT]:
        return TypeAdapter(self.start)


def fields_of(start: type[Any]) -> dict[str, Any]:
    """Return the fields of a start event with their types; none if it is of no known kind.

    Args:
        start: a dataclass or a pydantic model.
    """
    if issubclass(start, BaseModel):
        return {name: one.annotation for name, one in start.model_fields.items()}
    if dataclasses.is_dataclass(start):
        return {one.name: one.type for one in dataclasses.fields(start)}
    return {}


def values_of(start: Any) -> dict[str, Any]:
    """Return the values of a start event by field.

    Args:
        start: a dataclass or a pydantic model.
    """
    return {name: getattr(start, name) for name in fields_of(type(start))}
