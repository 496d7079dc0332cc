"""A log in memory, and what derivation writes into it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from delta_outbox.core.instants import iso_text
from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.workflow_engine.derivation.events import NewEvent, Origin, StartEvent, TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import (
    Derived,
    Ended,
    KnownInstance,
    admit,
    derive,
)
from delta_outbox.workflow_engine.derivation.plans import Plan

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def plan(number: int, *workflows: Graph[Any]) -> Plan:
    """Return workflows as a numbered write keeps them."""
    rows = joined(rows_of(one) for one in workflows)
    return Plan(number, {"version": str(number), "rows": rows})


def open_task(**changes: Any) -> TaskEvent:
    """Return a task that was triggered now, of the only instance that there is.

    Args:
        changes: what is different.
    """
    origin = Origin(
        event_id="e-1",
        started_at=iso_text(NOW),
        payload="{}",
        ordering_key=None,
        partition_key=None,
    )
    task: dict[str, Any] = {
        "workflow": "orders",
        "plan": 1,
        "version": 1,
        "instance": "1",
        "origin": origin,
        "fields": {},
        "created_at": NOW,
    }
    return TaskEvent(**{**task, **changes})


class DerivedLog:
    """The rows that derivation has made, by id.

    Args:
        plans: the versions of workflows; the last one is the newest.
    """

    def __init__(self, *plans: Plan) -> None:
        self.plans = {one.number: one for one in plans}
        self.newest = plans[-1].number
        self.rows: dict[str, NewEvent] = {}

    def known(self, derived: Derived) -> tuple[dict[str, KnownInstance], set[str]]:
        """Return what the log has of instances and ids."""
        known = {}
        keys = {one.task.key for one in derived.rows} | {one.key for one in derived.stranded}
        for key in keys:
            tasks = [one for one in self.tasks() if one.key == key]
            if tasks:
                count = len(tasks) + (key in self.rows)
                known[key] = KnownInstance(begun_by=tasks[0].origin.event_id, rows=count)
        return known, {one.row.event_id for one in derived.rows} & self.rows.keys()

    def follows(self, starts: Iterable[StartEvent] = (), ended: Iterable[Ended] = ()) -> Derived:
        """Return what is to be written, and write nothing."""
        derived = derive(starts, ended, self.plans, self.newest)
        return admit(derived, *self.known(derived))

    def write(self, starts: Iterable[StartEvent] = (), ended: Iterable[Ended] = ()) -> Derived:
        """Write what follows; no id is ever written twice."""
        derived = self.follows(starts, ended)
        made = [one.row for one in derived.rows]
        assert not {one.event_id for one in made} & self.rows.keys()
        self.rows |= {one.event_id: one for one in made}
        return derived

    def tasks(self) -> list[TaskEvent]:
        """Return the tasks of the log, as they are read from its rows."""
        return [
            TaskEvent.read(one.event_id, one.payload, one.created_at)
            for one in self.rows.values()
            if one.event_type.startswith(RESERVED)
        ]

    def task(self, task_id: str) -> TaskEvent:
        """Return a task that the log must have."""
        assert task_id in self.rows, f"no row '{task_id}' among {list(self.rows)}"
        (found,) = [one for one in self.tasks() if one.task_id == task_id]
        return found
