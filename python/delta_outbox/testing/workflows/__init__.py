"""Tests for workflows: scripted third parties, a virtual clock, and the algorithms that ship.

- clock: time that passes only when somebody says so
- errors: a test that is set up wrongly
- fixtures: of pytest
- inputs: checks what a test hands to the kit
- promises: what each category may never do, and the run against every script
- task_run: one task, by its algorithm, until it has an outcome
- third_parties: a third party with a ledger, which follows a script
- trace: what happened, as a table
- troubles: what can go wrong with a call
- workflow_run: an instance, from its start event to its end
"""

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
from delta_outbox.testing.workflows.third_parties import Call, Effect, ThirdParty
from delta_outbox.testing.workflows.troubles import TROUBLES, Trouble, random_script
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
