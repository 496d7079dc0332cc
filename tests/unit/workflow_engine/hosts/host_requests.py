"""Requests of attempts for the workflows of `author/misbehaving.py`, and the hosts themselves."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from delta_outbox.core.clock import boot_time
from delta_outbox.core.settings import FromEnvironment, SecretMapping
from delta_outbox.railway.algorithms.history import History, Limits
from delta_outbox.railway.algorithms.steps import Rules
from delta_outbox.railway.modules import load
from delta_outbox.workflow_engine.hosts.attempts import AttemptReport, AttemptRequest
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.hosts.pool import HostPool

AUTHOR = Path(__file__).parent / "author"
SECRET = "a-token-of-the-bank"
LIMIT = 30.0  # seconds in which everything happens that a test waits for
_NUMBERS = itertools.count()


def setup(**values: Any) -> Setup:
    """Return the set-up of hosts with the workflows of `author`."""
    settings = {"bank": SecretMapping({"token": FromEnvironment(SECRET)})}
    return Setup(modules=["misbehaving"], folder=AUTHOR, third_parties=settings, **values)


def request(
    workflow: str,
    *,
    limit: float = LIMIT,
    deadline: float = LIMIT,
    history: dict[str, Any] | None = None,
    expires: float | None = None,
    **start: Any,
) -> AttemptRequest:
    """Return a request.

    Args:
        workflow: and task of the same name.
        limit: seconds.
        deadline: seconds from now.
        history: of the task.
        expires: seconds after its trigger.
        start: fields of the start event.
    """
    task: Any = next(one for one in load(["misbehaving"], AUTHOR) if one.name == workflow).first
    name = f"{workflow}-{next(_NUMBERS)}"
    now = datetime.now(UTC)
    limits = replace(Limits.of(task), time_limit=timedelta(seconds=limit))
    if expires is not None:
        limits = replace(limits, expires=timedelta(seconds=expires))
    return AttemptRequest(
        workflow=workflow,
        task=workflow,
        task_id=name,
        instance=name,
        start=json.dumps({"name": name, **start}),
        rules=Rules.of(task),
        limits=limits,
        history=History(triggered_at=now, **(history or {})).claimed(now),
        deadline=boot_time() + deadline,
    )


def made(hosts: HostPool, workflow: str, **values: Any) -> AttemptReport:
    """Return the report of an attempt."""
    return hosts.submit(request(workflow, **values)).result(LIMIT)


def shared_host(hosts: HostPool) -> psutil.Process:
    """Return the host that carries out calls of `by_loop`, where there is one such host."""
    decided = made(hosts, "by_loop", does="tells").ending.decided
    assert decided is not None
    return psutil.Process(decided.data["process"])


def calls_of(hosts: HostPool) -> int:
    """Return how many calls shared hosts were given, and have not answered.

    Args:
        hosts: that were asked.
    """
    return sum(one.load for one in hosts._shared)


def processes_of(parent: int | None = None) -> list[psutil.Process]:
    """Return the hosts of a process, without those that have just ended.

    Args:
        parent: its id; this process if left out.
    """
    found = []
    for one in psutil.Process(parent).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is none either
            if "delta_outbox.workflow_engine.hosts.host" in one.cmdline():
                found.append(one)
    return found


def wait_for(fact: Callable[[], bool]) -> None:
    """Wait until something is so.

    Args:
        fact: says whether it is.
    """
    ends = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)


def is_gone(process: psutil.Process) -> bool:
    """Say whether a process has ended, waited for or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
