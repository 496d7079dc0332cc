"""An attempt for which no host is free has asked nobody, so it says nothing of the third party."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.workflow_engine.hosts.host_requests import request

from delta_outbox.core.clock import SystemClock
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway import Category
from delta_outbox.railway.algorithms.steps import AttemptEnding, Rules
from delta_outbox.workflow_engine.hosts.attempts import AttemptRun
from delta_outbox.workflow_engine.hosts.call import Answered, Call, TaskFacts
from delta_outbox.workflow_engine.hosts.host_process import HostProcess


class Few:
    """Hosts that answer so many calls; then all are taken by others.

    Args:
        answers: of the calls.
    """

    def __init__(self, *answers: object) -> None:
        self.answers = [*answers]

    async def host(
        self, *, alone: bool, until: float, wanted: Callable[[], bool]
    ) -> HostProcess | None:
        """Return one as long as there are answers."""
        return cast("HostProcess", self) if self.answers else None

    def begin(self, call: Call, *, limit: float, acts: bool) -> Any:
        """Answer a call."""
        word = asyncio.get_running_loop().create_future()
        word.set_result(Answered(self.answers.pop(0)))
        return SimpleNamespace(word=word)


def ended(category: Category, hosts: Few, *, expires: float, can_look_up: bool) -> AttemptEnding:
    """Return how an attempt ends after one that may have acted."""
    asked = request("by_loop", expires=expires)
    unsure_at = asked.history.triggered_at - timedelta(hours=1)
    history = replace(asked.history, attempts=1, executions=1, unsure_at=unsure_at)
    rules = Rules(category=category, can_look_up=can_look_up)
    facts = TaskFacts(
        category=str(category), third_party="bank", asynchronous=True, can_look_up=can_look_up
    )
    asked = replace(asked, rules=rules, history=history)
    run = AttemptRun(asked, facts, hosts, SystemClock(), alone=False)
    return asyncio.run(run.run()).ending


@pytest.mark.parametrize("expires", [-1.0, 3600.0])
@pytest.mark.parametrize(
    ("category", "can_look_up"),
    [
        (Category.IDEMPOTENT, False),
        (Category.IDEMPOTENT, True),
        (Category.PESSIMISTIC_LOCK, True),
        (Category.OPTIMISTIC_LOCK, True),
    ],
)
def test_what_nobody_could_ask_is_no_answer(
    category: Category, expires: float, *, can_look_up: bool
) -> None:
    """An unsure task whose third party cannot be asked for want of a host, by a look-up or with its
    key, is neither uncertain nor attempted, also if it is over: it is tried again a little later,
    and why is on record.
    """
    ending = ended(category, Few(), expires=expires, can_look_up=can_look_up)
    assert (Reason.RELEASED, "no host was free in time") == (ending.reason, str(ending.error))


def test_what_nobody_could_undo_is_not_left() -> None:
    """A first step that no host was free to undo is undone by the next attempt: the task is not
    uncertain for that.
    """
    step = {"reference": "theirs", "expired": True, "decided": None}
    hosts = Few([step, {**step, "reference": "another"}], None)
    ending = ended(Category.OPTIMISTIC_LOCK, hosts, expires=-1.0, can_look_up=True)
    assert Reason.RELEASED == ending.reason
