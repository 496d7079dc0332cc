"""Tests for workflows: scripted third parties, a virtual clock, and the algorithms that ship."""

from __future__ import annotations

from delta_outbox.railway.providers import provided
from delta_outbox.testing.workflows.clock import VirtualClock
from delta_outbox.testing.workflows.errors import KitError
from delta_outbox.testing.workflows.promises import (
    BrokenPromise,
    Explored,
    broken_promises,
    check_task,
    explore,
)
from delta_outbox.testing.workflows.task_run import TaskRun, run_task
from delta_outbox.testing.workflows.third_parties import (
    TROUBLES,
    Call,
    Effect,
    ThirdParty,
    Trouble,
    random_script,
)
from delta_outbox.testing.workflows.workflow_run import Answer, Passed, WorkflowRun, run_workflow

__all__ = [
    "TROUBLES",
    "Answer",
    "BrokenPromise",
    "Call",
    "Effect",
    "Explored",
    "KitError",
    "Passed",
    "TaskRun",
    "ThirdParty",
    "Trouble",
    "VirtualClock",
    "WorkflowRun",
    "broken_promises",
    "check_task",
    "explore",
    "provided",
    "random_script",
    "run_task",
    "run_workflow",
]
