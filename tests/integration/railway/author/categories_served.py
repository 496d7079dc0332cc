"""The workflows of a task each, whose third parties are scripted, in a process of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[4]))  # hosts begin without the tests

from tests.unit.workflow_engine.categories import (
    SINGLE,
    Keyed,
    Look,
    asked,
    ever,
    keyed,
    keyed_found,
    locked,
    once,
    thrice,
    two_steps,
)

from delta_outbox.railway import BlackBox, CertainlyNot, FinallyRefused, State, Task

__all__ = [
    "asked",
    "ever",
    "keyed",
    "keyed_found",
    "locked",
    "once",
    "provide",
    "thrice",
    "two_steps",
]


class Remote:
    """Asks the process of the third parties. What it is not to answer there kills this host, or
    leaves the call without an answer.

    Args:
        port: of the process, on this machine.
        worker: the relay of this host.
        task: whose third party it is.
    """

    def __init__(self, *, port: int, worker: str, task: type[State[Any, Any]]) -> None:
        self.port, self.worker = port, worker
        self.party = task.third_party
        self.is_alone = issubclass(task, BlackBox)
        self.is_in_loop = issubclass(task, Keyed)

    def act(self, key: str, what: Any, answer: Any) -> Any:
        if self.is_in_loop:
            return self._waited("act", key, what, answer)
        return self._asked("act", key, what, answer)

    def find(self, key: str) -> Any:
        return self._asked("find", key)

    def hold(self, key: str) -> Any:
        return self._asked("hold", key)

    def book(self, key: str, hold: str) -> Any:
        return self._asked("book", key, hold)

    def listed(self, key: str) -> Any:
        return self._asked("listed", key)

    def undo(self, key: str, hold: str) -> Any:
        return self._asked("undo", key, hold)

    async def _waited(self, method: str, *given: Any) -> Any:
        answer = self._request(method, *given)
        if answer.get("error") == "WorkerDied":
            await asyncio.Event().wait()
        return self._read(answer)

    def _asked(self, method: str, *given: Any) -> Any:
        answer = self._request(method, *given)
        if answer.get("error") == "WorkerDied":
            if self.is_alone:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(1e6)
        return self._read(answer)

    def _request(self, method: str, *given: Any) -> dict[str, Any]:
        request = {"party": self.party, "worker": self.worker, "method": method, "given": given}
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"{json.dumps(request)}\n".encode())
            with connection.makefile("rb") as lines:
                answer: dict[str, Any] = json.loads(lines.readline())
                return answer

    def _read(self, answer: dict[str, Any]) -> Any:
        match answer.get("error"):
            case None:
                return answer["value"]
            case "CertainlyNot":
                raise CertainlyNot("refused")
            case "FinallyRefused":
                raise FinallyRefused("refused for good")
        raise TimeoutError("no answer")


def provide(settings: Mapping[str, Mapping[str, Any]]) -> list[Task[Any, Any]]:
    """Return the tasks; each asks the process of its third party."""
    calling: list[Any] = [*SINGLE]
    made = [one(Remote(task=one, **settings[one.third_party])) for one in calling]
    return [*made, Look()]
