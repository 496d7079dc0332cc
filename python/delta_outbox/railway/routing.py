"""Where an instance goes: one rule, over the rows of the version that it has started with.

Whoever runs a workflow asks here, the kit for tests too: what it begins with, where an ending
leads, what a task is called. It knows no classes, so an instance goes on by its version even
where the code is another one by now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from delta_outbox.core.instants import instant_of, micros
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.graph import Event
from delta_outbox.railway.identifiers import Template, task_identifier
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Exit
from delta_outbox.railway.rows import Row, Rows, start_fields
from delta_outbox.railway.tasks import Category

# twin: macros/workflows/cause_of_ending.sql::cause_of_ending
CAUSES: Final = {
    Reason.COMPLETED: "decided",
    Reason.REJECTED: "faulted",
    Reason.EXHAUSTED: "faulted",
    Reason.EXPIRED: "expired",
    Reason.UNCERTAIN: "uncertain",
    Reason.OPERATOR: "killed",
}
"""What has happened to a task, by the reason that the log has for its ending."""

Facts = Mapping[str, Mapping[str, Any]]
"""By task, the data of its latest decision."""


class LeadsNowhere(Exception):
    """The version of an instance does not say where an ending leads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEnding:
    """What has become of a task.

    Args:
        cause: `decided`, `faulted`, `expired`, `uncertain` or `killed`.
        outcome: that was chosen, `DEFAULT_EXIT` for the default exit; None if nobody chose, and
            the rows say what follows from the cause.
        data: of a decision.
    """

    cause: str
    outcome: str | Exit | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an instance stands: at a task, and what it has been through.

    Args:
        task: its name.
        visits: by task, how often the instance has come to it, this time included.
        facts: by task, the data of its latest decision.
    """

    task: str
    visits: Mapping[str, int]
    facts: Facts = field(default_factory=dict)

    @property
    def visit(self) -> int:
        """Return how often the instance has come to this task, this time included."""
        return self.visits[self.task]


class Routing:
    """Where the instances of one version of a workflow go.

    Args:
        rows: of the workflow; those of others are passed over.
        workflow: its name.
    """

    def __init__(self, rows: Rows, workflow: str) -> None:
        def of(seed: str) -> list[Row]:
            return [row for row in rows[seed] if row["workflow"] == workflow]

        (self.row,) = of("railway_workflows")
        self.workflow = workflow
        self.tasks = {row["task"]: row for row in of("railway_tasks")}
        self.start_fields = start_fields(self.row["start_fields"])
        self._targets: dict[tuple[str, str], Row] = {}
        self._fallbacks: dict[tuple[str, str], str] = {}
        for row in of("railway_routes"):
            if row["cause"] == "decided":
                self._targets[row["task"], row["outcome"]] = row
            else:
                self._fallbacks[row["task"], row["cause"]] = row["outcome"]

    @cached_property
    def fields(self) -> frozenset[str]:
        """Return the fields of the start event that its instance and its identifiers use."""
        templates = [self.row["instance"], *(row["identifier"] for row in self.tasks.values())]
        used = frozenset[str]().union(*(Template(one).fields for one in templates))
        return used & self.start_fields.keys()

    def instance(self, values: Mapping[str, object], event_id: str) -> str:
        """Return the instance that a start event begins.

        Args:
            values: of its fields.
            event_id: of the event.
        """
        return Template(self.row["instance"]).fill({**values, "event_id": event_id})

    def task_id(self, place: Place, instance: str, values: Mapping[str, object]) -> str:
        """Return the identifier of the task at which an instance stands.

        Args:
            place: where.
            instance: whose.
            values: of the fields of the start event.
        """
        return task_identifier(
            self.tasks[place.task]["identifier"],
            values,
            workflow=self.workflow,
            task=place.task,
            instance=instance,
            visit=place.visit,
        )

    def first(self) -> Place:
        """Return where an instance begins."""
        task = self.row["first_task"]
        return Place(task=task, visits={task: 1})

    def outcome(self, task: str, ending: TaskEnding) -> str | Exit:
        """Return what counts as the outcome of a task: what was chosen, else what the rows say. The
        instance of a task that an operator has killed ends by the default exit.

        Args:
            task: its name.
            ending: what has become of it.

        Raises:
            LeadsNowhere: the rows do not say what follows from its cause.
        """
        if ending.outcome is not None:
            return ending.outcome
        if ending.cause == CAUSES[Reason.OPERATOR]:
            return DEFAULT_EXIT
        if (task, ending.cause) not in self._fallbacks:
            raise LeadsNowhere(f"{self.workflow}.{task}: nothing follows from '{ending.cause}'.")
        return self._fallbacks[task, ending.cause] or DEFAULT_EXIT

    # twin: macros/invariants/workflows/targets_select.sql::targets_select
    def after(self, place: Place, ending: TaskEnding) -> Place | Event:
        """Return where an instance goes from a task: to another one, or to the event that ends it.

        Args:
            place: where it stands.
            ending: what has become of the task there.

        Raises:
            LeadsNowhere: the version has no such outcome, or no default exit.
        """
        outcome = self.outcome(place.task, ending)
        if isinstance(outcome, Exit):
            if not self.row["default_exit"]:
                raise LeadsNowhere(f"{self.workflow} has no default exit.")
            return Event(event_type=self.row["default_exit"])
        to = self._targets.get((place.task, outcome))
        if to is None:
            raise LeadsNowhere(f"{self.workflow}.{place.task} has no outcome {outcome!r}.")
        if to["to_event"]:
            return Event(event_type=to["to_event"])
        task = to["to_task"]
        return Place(
            task=task,
            visits={**place.visits, task: place.visits.get(task, 0) + 1},
            facts=facts_after(place, ending),
        )

    def tasks_after(self, task: str) -> list[str]:
        """Return the tasks to which the outcomes of a task lead.

        Args:
            task: its name.
        """
        return [
            row["to_task"]
            for (name, _), row in self._targets.items()
            if name == task and row["to_task"]
        ]

    def outcomes(self, task: str) -> frozenset[str]:
        """Return what a task may decide.

        Args:
            task: its name.
        """
        return frozenset(outcome for name, outcome in self._targets if name == task)

    def roles(self, task: str) -> frozenset[str]:
        """Return who may answer items of a task; nobody, if it waits for nobody.

        Args:
            task: its name.
        """
        return frozenset(filter(None, self.tasks[task]["roles"].split("|")))

    def is_to_do(self, task: str) -> bool:
        """Say whether a task waits for somebody.

        Args:
            task: its name.
        """
        return self.tasks[task]["category"] == Category.TO_DO

    def expires_at(self, task: str, since: datetime) -> datetime | None:
        """Return when a task expires, None if never.

        Args:
            task: its name.
            since: when it was triggered.
        """
        return _later(since, self.tasks[task]["expires_seconds"])

    def due_at(self, task: str, since: datetime) -> datetime | None:
        """Return when somebody is reminded of a task, None if nobody is.

        Args:
            task: its name.
            since: when it was triggered.
        """
        return _later(since, self.tasks[task]["due_seconds"])


def facts_after(place: Place, ending: TaskEnding) -> Facts:
    """Return what later tasks may read: only a task that has decided has facts.

    Args:
        place: where the instance stands.
        ending: what has become of the task there.
    """
    if ending.cause != "decided":
        return place.facts
    return {**place.facts, place.task: ending.data}


def _later(since: datetime, seconds: str) -> datetime | None:
    """Return an instant after another one, at the latest the end of the year 9999."""
    if not seconds:
        return None
    return instant_of(micros(since) + int(Decimal(seconds) * 1_000_000))
