"""What an attempt of a task is given: all of it stands in the task's event and the rows of the
plan that its instance has started with.
"""

from __future__ import annotations

from datetime import timedelta

from delta_outbox.railway.algorithms.history import History, Limits
from delta_outbox.railway.algorithms.steps import Rules
from delta_outbox.railway.compromises import compromise_of
from delta_outbox.railway.routing import Routing
from delta_outbox.railway.rows import Row
from delta_outbox.railway.tasks import Category
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.hosts.attempts import AttemptRequest
from delta_outbox.workflow_engine.hosts.call import TaskFacts
from delta_outbox.workflow_engine.hosts.host_process import GRACE


def attempt_request(
    task: TaskEvent, routing: Routing, facts: TaskFacts, history: History, *, until: float
) -> AttemptRequest:
    """Return what an attempt is given.

    Args:
        task: to attempt.
        routing: of the version that its instance has started with.
        facts: what hosts say of the task.
        history: of its earlier attempts, this claim included.
        until: by the boot-time clock; all is over by then.
    """
    row = routing.tasks[task.place.task]
    limits = limits_of(row, task)
    return AttemptRequest(
        workflow=task.workflow,
        task=task.place.task,
        task_id=task.task_id,
        instance=task.instance,
        visit=task.place.visit,
        start=task.origin.payload,
        facts=task.place.facts,
        rules=Rules(
            category=Category(row["category"]),
            can_look_up=facts.can_look_up,
            compromise=compromise_of(row["compromise"]),
        ),
        limits=limits,
        history=history,
        deadline=until - limits.time_limit.total_seconds() - GRACE,
    )


def limits_of(row: Row, task: TaskEvent) -> Limits:
    """Return the durations of a task.

    Args:
        row: of the task.
        task: the event, which says when it expires.
    """
    return Limits(
        expires=None if task.expires_at is None else task.expires_at - task.created_at,
        time_limit=_span(row["time_limit_seconds"]) or timedelta(0),
        settles=_span(row["settles_within_seconds"]) or timedelta(0),
        key_valid=_span(row["key_valid_for_seconds"]),
    )


def _span(seconds: str) -> timedelta | None:
    return timedelta(seconds=float(seconds)) if seconds else None
