"""Workflows of an author whose code does to its process whatever code can do.

What an attempt does is the field `does` of the start event.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from delta_outbox.railway import (
    DEFAULT_EXIT,
    AtMostOnce,
    BlackBox,
    CertainlyNot,
    Concerns,
    Decided,
    Event,
    FinallyRefused,
    FirstStep,
    Hurt,
    Idempotent,
    Necessity,
    Never,
    NotDue,
    OptimisticLock,
    Outcome,
    PessimisticLock,
    Risk,
    Task,
    Trigger,
    Visibility,
    Workflow,
    route,
)


@dataclass(frozen=True, kw_only=True)
class Start:
    name: str
    does: str = "acts"
    port: int = 0
    note: str = ""


class Done(Outcome):
    DONE = "done"
    NOT_DONE = "not_done"


class Other(Outcome):
    OTHER = "other"


class Odd(CertainlyNot):
    """It pickles, and what was pickled cannot be opened."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("odd")


class Unspeakable(CertainlyNot):
    def __str__(self) -> str:
        raise SystemExit


class Bank:
    """The client; each request of it is a line to the ledger, and the answer to it."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.token = str(settings["token"])

    def do(self, start: Start, key: str) -> None:
        with socket.create_connection(("127.0.0.1", start.port)) as connection:
            connection.sendall(f"{key}\n".encode())
            assert connection.recv(1)

    async def do_async(self, start: Start, key: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", start.port)
        writer.write(f"{key}\n".encode())
        assert await reader.read(1)
        writer.close()


def raises(error: BaseException) -> NoReturn:
    raise error


def forks(start: Start) -> None:
    os.fork()  # the child returns too


def ends_what_it_forks(start: Start) -> None:
    ready, told = os.pipe()
    if (child := os.fork()) == 0:
        os.write(told, b"!")
        time.sleep(1000)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)


def leaves_a_process(start: Start) -> None:
    process = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
    Path(start.note).write_text(str(process.pid))


def blocks_until(start: Start) -> None:
    while not Path(start.note).exists():
        time.sleep(0.01)


def refuses_late(start: Start) -> None:
    blocks_until(start)
    raise FinallyRefused


def leaves_a_stray(start: Start) -> None:
    # When this returns, it has left the group of its host, and is not ended with that.
    subprocess.Popen(["sleep", "90"], start_new_session=True, close_fds=False)


def leaves_a_stray_with_pipes(start: Start) -> None:
    for descriptor in range(3, 100):
        with contextlib.suppress(OSError):
            os.set_inheritable(descriptor, True)
    leaves_a_stray(start)


def leaks_threads(start: Start) -> None:
    for _ in range(150):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()


def grows(start: Start) -> None:
    KEPT.append(b"x" * 80 * 1024 * 1024)


def holds_the_interpreter(start: Start) -> None:
    re.match("(a+)+b", "a" * 64)


KEPT: list[bytes] = []
DEEDS: Mapping[str, Callable[[Start], object]] = {
    "certainly_not": lambda start: raises(CertainlyNot("the card is blocked")),
    "refused": lambda start: raises(FinallyRefused("no such account")),
    "refuses_late": refuses_late,
    "not_due": lambda start: raises(NotDue("closed at night")),
    "no_connection": lambda start: raises(ConnectionRefusedError(111, start.note)),
    "repeats": lambda start: raises(CertainlyNot(f"{start.note} {BANK[0].token} is wrong")),
    "odd": lambda start: raises(Odd(1, 2)),
    "unspeakable": lambda start: raises(Unspeakable()),
    "error": lambda start: raises(ValueError(f"{start.note} {BANK[0].token}")),
    "exit": lambda start: sys.exit(start.note),
    "interrupt": lambda start: raises(KeyboardInterrupt(start.note)),
    "group": lambda start: raises(BaseExceptionGroup(start.note, [SystemExit(1)])),
    "stop": lambda start: raises(StopIteration(start.note)),
    "cancelled": lambda start: raises(asyncio.CancelledError(start.note)),
    "nothing": lambda start: None,
    "prints": lambda start: sys.stdout.write("x" * 2_000_000),
    "closes": lambda start: [sys.stdout.close(), *map(os.close, (0, 1))],
    "closes_all": lambda start: os.closerange(0, 1000),
    "forks": forks,
    "ends_what_it_forks": ends_what_it_forks,
    "leaves_a_process": leaves_a_process,
    "leaves_a_stray": leaves_a_stray,
    "leaves_a_stray_with_pipes": leaves_a_stray_with_pipes,
    "leaks_threads": leaks_threads,
    "grows": grows,
    "exits": lambda start: os._exit(3),
    "is_killed": lambda start: os.kill(os.getpid(), signal.SIGKILL),
    "crashes": lambda start: signal.raise_signal(signal.SIGSEGV),
    "blocks": lambda start: time.sleep(1000),
    "blocks_until": blocks_until,
    "holds_the_interpreter": holds_the_interpreter,
}
RETURNS: dict[str, Any] = {
    "nothing": None,
    "a_word": "done",
    "other": Decided(outcome=Other.OTHER),
    "no_json": Decided(outcome=Done.DONE, data={"at": timedelta(1)}),
    "no_text": Decided(outcome=Done.DONE, data={"name": "\ud800"}),
    "too_much": Decided(outcome=Done.DONE, data={"text": "x" * 2_000_000}),
}
for name, levels in (("too_deep", 65), ("far_too_deep", 100_000)):
    levels_of: dict[str, Any] = {}
    for _ in range(levels - 1):
        levels_of = {"": levels_of}
    RETURNS[name] = Decided(outcome=Done.DONE, data=levels_of)
STEPS: Mapping[str, Sequence[FirstStep[Done]]] = {
    "long_references": [FirstStep(reference="x" * 17 * 1024**2)],
    "many_steps": [
        FirstStep(reference=str(one), decided=Decided(outcome=Done.DONE, data={"": "x" * 10**6}))
        for one in range(17)
    ],
}
BANK: list[Bank] = []


def returned(start: Start) -> Decided[Done]:
    done: Decided[Done] = RETURNS.get(start.does, Decided(outcome=Done.DONE, data={"by": "us"}))
    return done


class ByThread(PessimisticLock[Start, Done]):
    third_party = "bank"
    identifier = "by-thread-{name}"
    time_limit = timedelta(seconds=60)
    settles_within = timedelta(seconds=1)
    expires = timedelta(hours=1)
    when_uncertain = DEFAULT_EXIT

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Done]:
        start = trigger.start
        if start.port:
            self.bank.do(start, task_id)
        DEEDS.get(start.does, lambda start: None)(start)
        return returned(start)

    def lookup(self, trigger: Trigger[Start], task_id: str) -> Decided[Done] | None:
        match trigger.start.does:
            case "lookup_hangs":
                time.sleep(1000)
            case "lookup_finds":
                return Decided(outcome=Done.NOT_DONE)
        return None

    def still_needed(self, trigger: Trigger[Start], task_id: str) -> bool:
        if trigger.start.does == "still_needed_hangs":
            time.sleep(1000)
        return trigger.start.does != "needed_no_more"

    def back_off(
        self, attempts: int, trigger: Trigger[Start], task_id: str, error: Exception | None
    ) -> timedelta | None:
        if trigger.start.note == "back_off_exits":
            sys.exit(1)
        match error:
            case Odd() | ValueError():
                return timedelta(seconds=7)
            case FinallyRefused():
                return timedelta(seconds=8)
            case CertainlyNot():
                return timedelta(seconds=9)
            case None:
                return None
        return timedelta(seconds=10)

    def on_fault(
        self, error: Exception | None, trigger: Trigger[Start], task_id: str
    ) -> Done | Any:
        if trigger.start.note == "on_fault_is_wrong":
            return "wrong"
        return Done.NOT_DONE if isinstance(error, FinallyRefused) else DEFAULT_EXIT


class ByLoop(Idempotent[Start, Done]):
    third_party = "bank"
    identifier = "by-loop-{name}"
    time_limit = timedelta(seconds=60)
    key_valid_for = Never(why="it keeps them")
    expires = timedelta(hours=1)
    when_uncertain = DEFAULT_EXIT

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    async def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Done]:
        start = trigger.start
        if start.port:
            await self.bank.do_async(start, task_id)
        match start.does:
            case "tells":
                return Decided(outcome=Done.DONE, data={"process": os.getpid()})
            case "waits":
                await asyncio.sleep(1000)
            case "waits_for":
                await asyncio.to_thread(blocks_until, start)
            case "will_not_be_cancelled":
                while True:
                    with contextlib.suppress(BaseException):
                        await asyncio.sleep(1000)
            case "exits_beside":
                beside = asyncio.create_task(_exits())
                await asyncio.wait([beside], timeout=0.1)
        DEEDS.get(start.does, lambda start: None)(start)
        return returned(start)


async def _exits() -> None:
    raise SystemExit(1)


class Awaitable(Idempotent[Start, Done]):
    third_party = "post"
    identifier = "awaitable-{name}"
    time_limit = timedelta(seconds=60)
    key_valid_for = Never(why="it keeps them")
    expires = timedelta(hours=1)
    when_uncertain = DEFAULT_EXIT

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Any:
        async def later() -> Decided[Done]:
            await asyncio.sleep(0)
            DEEDS.get(trigger.start.does, lambda start: None)(trigger.start)
            return returned(trigger.start)

        return later()


class InTwoSteps(OptimisticLock[Start, Done]):
    third_party = "hotel"
    identifier = "in-two-steps-{name}"
    time_limit = timedelta(seconds=60)
    expires = timedelta(hours=1)
    when_uncertain = DEFAULT_EXIT
    why_not_pessimistic = "measured"

    def __init__(self) -> None:
        self.steps: dict[str, list[str]] = {}

    async def first_step(self, trigger: Trigger[Start], task_id: str) -> str:
        return "x" * 17 * 1024**2 if trigger.start.does == "long_reference" else "mine"

    async def lookup(self, trigger: Trigger[Start], task_id: str) -> Sequence[FirstStep[Done]]:
        steps: Sequence[FirstStep[Done]] = [
            FirstStep(reference="theirs", expired=True),
            FirstStep(reference="mine"),
        ]
        return STEPS.get(trigger.start.does, steps)

    async def attempt(self, trigger: Trigger[Start], task_id: str, reference: str) -> Decided[Done]:
        return Decided(outcome=Done.DONE, data={"step": reference})

    def undo(self, trigger: Trigger[Start], task_id: str, reference: str) -> None:
        if trigger.start.does == "undo_fails":
            raise ValueError(reference)


class Alone(BlackBox[Start, Done]):
    third_party = "terminal"
    identifier = "alone-{name}"
    time_limit = timedelta(seconds=60)
    expires = timedelta(hours=1)
    compromise = AtMostOnce()
    when_uncertain = Done.NOT_DONE
    concerns = Concerns(
        visibility=Visibility.TRACEABLE,
        necessity=Necessity.MUST,
        hurt=Hurt.CUSTOMER,
        risks=frozenset({Risk.ECONOMIC}),
        decided_by="a test",
        why="it is one",
    )

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Done]:
        start = trigger.start
        if start.port:
            self.bank.do(start, task_id)
        DEEDS.get(start.does, lambda start: None)(start)
        return Decided(outcome=Done.DONE, data={"process": os.getpid()})


def of(task: type[Task[Start, Done]]) -> Workflow[Start]:
    name = task.task_name()
    ended = Event(event_type=f"{name}.ended")
    return Workflow(
        name=name,
        starts_on=f"{name}.started",
        start=Start,
        instance="{name}",
        first=task,
        routes=(route(task, {Done.DONE: ended, Done.NOT_DONE: ended}),),
        default_exit=ended,
    )


TASKS: list[type[Task[Start, Done]]] = [ByThread, ByLoop, Awaitable, InTwoSteps, Alone]
by_thread, by_loop, awaitable, in_two_steps, alone = map(of, TASKS)


def provide(settings: Mapping[str, Any]) -> list[Task[Start, Done]]:
    """Return the tasks with their client."""
    BANK.append(Bank(settings["bank"]))
    return [ByThread(BANK[0]), ByLoop(BANK[0]), Awaitable(), InTwoSteps(), Alone(BANK[0])]
