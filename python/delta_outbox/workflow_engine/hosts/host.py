"""The process in which code of authors runs: it carries out calls, and knows nothing else.

It says "started" right before it calls an author's function, and only then looks at the deadline
for the last time. So whatever becomes of this process, its parent knows of each call whether it may
have acted. Functions that are `async def` share one loop, which runs in the main thread; each other
call has a thread of its own. What ends the process by force ends it for all of them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import pickle
import resource
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from inspect import isawaitable, iscoroutinefunction
from itertools import starmap
from pathlib import Path
from typing import Any, Final

from delta_outbox.core.clock import boot_time
from delta_outbox.core.errors import OutboxError
from delta_outbox.core.secrets import hiding, secrets_of
from delta_outbox.railway.algorithms.steps import Rules
from delta_outbox.railway.author_decisions import is_ours
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.modules import load
from delta_outbox.railway.providers import tasks_of
from delta_outbox.railway.rows import rows_of
from delta_outbox.railway.tasks import State
from delta_outbox.railway.triggers import Trigger
from delta_outbox.workflow_engine.hosts.answers import encoded, error_of, place, told
from delta_outbox.workflow_engine.hosts.call import (
    DECISIONS,
    Call,
    Setup,
    TaskFacts,
    Told,
    line_of,
)
from delta_outbox.workflow_engine.hosts.parent_death import die_with, leave_guard

_MEMORY: Final = Path("/proc/self/statm")  # Linux
OF_SERVICES: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LEFT_THREADS: Final = 100  # that code of authors may leave behind in one host


class Channel:
    """The pipes to the parent. Without them this process has no business any more.

    Args:
        calls: the descriptor that calls come from.
        words: the descriptor that is written to.
    """

    def __init__(self, calls: int, words: int) -> None:
        self._words, self._descriptors = words, (calls, words)
        for one in self._descriptors:
            os.set_inheritable(one, False)  # `pass_fds` has left them so
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.lines = os.fdopen(calls, "rb", closefd=False)
        os.register_at_fork(after_in_child=self._forked)

    def send(self, **message: Any) -> None:
        """Send a message; it is in the kernel, and survives this process, when this returns.

        Args:
            message: values of JSON.
        """
        line = memoryview(line_of(message))
        try:
            with self._lock:
                while line:
                    line = line[os.write(self._words, line) :]
        except OSError:
            self.end()

    def end(self) -> None:
        """End this process, and all that it has started."""
        if os.getpid() == self._process:
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    def _forked(self) -> None:
        """In a child that code of an author has forked: it must not speak for this process."""
        self._lock, self._words = threading.Lock(), -1
        for one in self._descriptors:
            with contextlib.suppress(OSError):
                os.close(one)


class Host:
    """Carries out the calls that come, until nobody is there who asks.

    Args:
        channel: to the parent.
        setup: what was sent over it first.
    """

    def __init__(self, channel: Channel, setup: Setup) -> None:
        self._channel = channel
        workflows = load(setup.modules, setup.folder)
        given = tasks_of(setup.modules, setup.third_parties)
        self._workflows: dict[str, Graph[Any]] = {one.name: one for one in workflows}
        self._tasks: dict[tuple[str, str], Any] = {
            (workflow.name, task.task_name()): given[task]
            for workflow in workflows
            for task in workflow.tasks
            if issubclass(task, State)
        }
        self._loop = asyncio.new_event_loop()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._threads: set[int] = set()  # in which calls run
        self._growth_bytes = setup.growth_bytes
        self._memory, self._others = _memory(), threading.active_count()

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return what the parent must know of each task."""
        hashes = {
            name: rows_of(one)["railway_workflows"][0]["hash"]
            for name, one in self._workflows.items()
        }
        return {
            f"{workflow}/{name}": asdict(
                TaskFacts(
                    category=task.category,
                    third_party=task.third_party,
                    asynchronous=iscoroutinefunction(task.attempt),
                    hash=hashes[workflow],
                    can_look_up=Rules.of(type(task)).can_look_up,
                    decides=[one for one in DECISIONS if not is_ours(task, one)],
                )
            )
            for (workflow, name), task in self._tasks.items()
        }

    def run(self) -> None:
        """Carry out calls; whatever an author's code raises in the loop, it goes on."""
        threading.Thread(target=self._read, name="calls", daemon=True).start()
        while not self._loop.is_closed():
            with contextlib.suppress(BaseException):
                self._loop.run_forever()
        self._channel.end()

    def _read(self) -> None:
        try:
            for line in self._channel.lines:
                message = json.loads(line)
                if "cancel" in message:
                    self._loop.call_soon_threadsafe(self._cancel, message["cancel"])
                else:
                    self._begin(message["id"], Call.of(message["call"]))
        finally:
            self._channel.end()

    def _begin(self, number: int, call: Call) -> None:
        function = getattr(self._task(call), call.function)
        if iscoroutinefunction(function):
            self._loop.call_soon_threadsafe(self._begin_in_loop, number, call)
        else:
            threading.Thread(
                target=self._in_thread, args=(number, call), name=call.task_id, daemon=True
            ).start()

    def _cancel(self, number: int) -> None:
        if number in self._running:
            self._running[number].cancel()

    # --- one call --------------------------------------------------------------------------------

    def _begin_in_loop(self, number: int, call: Call) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._running.pop(number, None)
            if task.cancelled():  # before its first step
                self._answer(number, Told(kind="not_begun", message="it was taken back"))

        self._running[number] = task = self._loop.create_task(self._in_loop(number, call))
        task.add_done_callback(ended)

    async def _in_loop(self, number: int, call: Call) -> None:
        ask = self._prepared(number, call)
        if ask is None:
            return
        try:
            answer = encoded(call, self._task(call), await ask())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent is told
            answer = told(call, error)
        self._answer(number, answer)

    def _in_thread(self, number: int, call: Call) -> None:
        self._threads.add(threading.get_ident())
        try:
            ask = self._prepared(number, call)
            if ask is None:
                return
            try:
                value = ask()
                if isawaitable(value):
                    value = asyncio.run_coroutine_threadsafe(_waited(value), self._loop).result()
                    if isinstance(value, _Raised):
                        raise value.error
                answer = encoded(call, self._task(call), value)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the parent is told
                answer = told(call, error)
            self._answer(number, answer)
        finally:
            self._threads.discard(threading.get_ident())

    def _prepared(self, number: int, call: Call) -> Callable[[], Any] | None:
        """Return the author's function with its arguments, the parent being told that it starts.

        Nothing stands between the last look at the clock and the function.
        """
        try:
            arguments = self._arguments(call)
            function = getattr(self._task(call), call.function)
        except BaseException as error:  # noqa: BLE001 - nothing has been sent
            message = f"its arguments cannot be made: {place(error)}"
            self._answer(number, Told(kind="certainly_not", message=message))
            return None
        self._channel.send(started=number, at=boot_time())
        if boot_time() >= call.deadline:
            self._answer(number, Told(kind="not_begun", message="its deadline has passed"))
            return None
        return lambda: function(*arguments)

    def _task(self, call: Call) -> Any:
        return self._tasks[call.workflow, call.task]

    def _arguments(self, call: Call) -> Sequence[Any]:
        trigger = Trigger(
            instance=call.instance,
            start=self._workflows[call.workflow].parse(call.start),
            visit=call.visit,
            facts=call.facts,
        )
        match call.function:
            case "back_off":
                return [*call.more, trigger, call.task_id, error_of(call.error)]
            case "on_fault":
                return [error_of(call.error), trigger, call.task_id]
        return [trigger, call.task_id, *call.more]

    def _answer(self, number: int, answer: Any) -> None:
        left = threading.active_count() - self._others - len(self._threads)
        worn = left > _LEFT_THREADS or _memory() - self._memory > self._growth_bytes
        if isinstance(answer, Told):
            self._channel.send(answered=number, error=asdict(answer), worn=worn)
        else:
            self._channel.send(answered=number, value=answer, worn=worn)


@dataclass(frozen=True)
class _Raised:
    error: BaseException


async def _waited(value: Any) -> Any:
    # A SystemExit that leaves a task of asyncio ends its loop.
    try:
        return await value
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        return _Raised(error)


def _memory() -> int:
    """Return the bytes of memory that this process has; on macOS, has had at most."""
    with contextlib.suppress(OSError):
        return int(_MEMORY.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _stay(*_: object) -> None:
    """Do nothing at a signal that ends a service. Its processes may all be sent it at once, and the
    relay finishes what is in flight first; then it ends this process.
    """


def main(calls: int, words: int, parent: int) -> None:
    """Be a host.

    Args:
        calls: the descriptor that calls come from.
        words: the descriptor that is written to.
        parent: the process id of who has started it.
    """
    # Not SIG_IGN, which is inherited by what code of authors runs; what it forks is as others are.
    before = {number: signal.signal(number, _stay) for number in OF_SERVICES}
    die_with(parent)
    guard = leave_guard((calls, words))
    os.register_at_fork(after_in_child=lambda: [*starmap(signal.signal, before.items())])
    channel = Channel(calls, words)
    channel.send(guard=guard)
    setup: Setup = pickle.loads(base64.b64decode(channel.lines.readline()))
    # Both in force before code of an author runs.
    secrets = [secret for table in setup.third_parties.values() for secret in secrets_of(table)]
    with hiding(secrets):
        try:
            host = Host(channel, setup)
            facts = host.facts()
        except OutboxError as error:
            channel.send(failed=error.as_dict())
        except BaseException as error:  # noqa: BLE001 - code of an author, at its import
            message = f"The workflows cannot be loaded: {place(error)}."
            channel.send(failed={**OutboxError("").as_dict(), "message": message})
        else:
            channel.send(tasks=facts)
            host.run()
    channel.end()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
