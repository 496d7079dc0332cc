"""An attempt for which no host is free has asked nobody, so it says nothing of the third party."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.workflow_engine.hosts.host_requests import request

from delta_outbox.core.clock import SystemClock
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway import Category
from delta_outbox.railway.algorithms.steps import Rules
from delta_outbox.workflow_engine.hosts.attempts import AttemptRun
from delta_outbox.workflow_engine.hosts.call import TaskFacts
from delta_outbox.workflow_engine.hosts.host_process import HostProcess


class Nobody:
    """All hosts are taken by others."""

    async def host(
        self, *, alone: bool, until: float, wanted: Callable[[], bool]
    ) -> HostProcess | None:
        """Return none."""


@pytest.mark.parametrize("expires", [-1.0, 3600.0])
@pytest.mark.parametrize("category", [Category.PESSIMISTIC_LOCK, Category.OPTIMISTIC_LOCK])
def test_what_nobody_could_ask_is_no_answer(category: Category, expires: float) -> None:
    """An unsure task whose third party cannot be asked for want of a host is neither uncertain nor
    attempted, also if it is over: it is tried again a little later, and why is on record.
    """
    asked = request("by_loop", expires=expires)
    unsure_at = asked.history.triggered_at - timedelta(hours=1)
    history = replace(asked.history, attempts=1, executions=1, unsure_at=unsure_at)
    asked = replace(asked, rules=Rules(category=category, can_look_up=True), history=history)
    facts = TaskFacts(
        category=str(category), third_party="bank", asynchronous=True, can_look_up=True
    )
    run = AttemptRun(asked, facts, Nobody(), SystemClock(), alone=False)
    ending = asyncio.run(run.run()).ending
    assert (Reason.RELEASED, "no host was free in time") == (ending.reason, str(ending.error))
