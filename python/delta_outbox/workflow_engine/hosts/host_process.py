"""A host as its parent sees it: started, asked, ended, and of each call whether it has begun."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from delta_outbox.core.clock import boot_time
from delta_outbox.core.errors import OutboxError, ToldError
from delta_outbox.workflow_engine.hosts.call import (
    LONGEST_LINE,
    Answered,
    Call,
    Lost,
    NotStarted,
    Setup,
    TaskFacts,
    Told,
    Word,
    line_of,
)
from delta_outbox.workflow_engine.hosts.parent_death import is_left

logger: Final = logging.getLogger(__name__)

GRACE: Final = 0.5  # seconds, for what was cancelled to end, and for lines on their way
DEATH_LIMIT: Final = 10.0  # seconds, after SIGKILL; a process that the kernel holds is left behind
START_LIMIT: Final = 60.0  # seconds, for the imports and `provide`
_CHANGED: Final = "The workflows are not those that this process was started with."


class HostNotStarted(OutboxError):
    """A host ended, or hung, before it was ready: import the modules of workflows by hand."""

    code = "HOST_NOT_STARTED"
    remedy = "Run `outbox workflow check`, which imports the same modules and calls `provide`."


@dataclass(kw_only=True)
class RunningCall:
    """A call that a host was given.

    Args:
        name: for people.
        acts: whether it may change something at the third party.
        limit: seconds that it may take from its start.
        word: what is known of it in the end.
        timer: what comes next if it says nothing.
        cut: ends it now, as if it were over its limit.
        started: the host has said so.
        over: why it was told to end, after "it"; empty if it was not.
    """

    name: str
    acts: bool
    limit: float
    word: asyncio.Future[Word]
    timer: asyncio.TimerHandle
    cut: Callable[[], None]
    started: bool = False
    over: str = ""


class HostProcess:
    """One host, started. All methods are called in the loop of the thread that has made it.

    That thread must live as long as the host: to the kernel it is the parent.

    Args:
        setup: what it loads.
        expects: by `workflow/task`, what it must find there; empty for the first host.
        calls: after which it is to be renewed.
        changed: called when the host is ready, free, to be renewed, or gone.

    Raises:
        OSError: this machine has no room for a process.
        HostNotStarted: the set-up cannot be pickled.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        expects: Mapping[str, TaskFacts],
        calls: int,
        changed: Callable[[], None],
    ) -> None:
        try:
            first_line = base64.b64encode(pickle.dumps(setup)) + b"\n"
        except Exception as error:  # noqa: BLE001 - whatever a value of them raises
            raise HostNotStarted(
                "The settings of third parties cannot be given to a host: "
                f"pickling them has raised {type(error).__name__}.",
                remedy="Give them as values of TOML only.",
            ) from None
        self._expects = expects
        self._calls_left, self._changed = calls, changed
        self._numbers = itertools.count()
        self._running: dict[int, RunningCall] = {}
        self._loop = asyncio.get_running_loop()
        self._has_grown = False
        self._hangs = False  # a thread of it, or its loop
        self._guard: int | None = None  # its process id
        self._why: str | None = None  # it is ended
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._drained = False
        self.tasks: dict[str, TaskFacts] = {}
        """By `workflow/task`; empty before the host is ready."""
        self.is_gone = False
        # Two pipes, because what a process has written into one is read to its end, however the
        # process has died. A socket is reset if it had not read everything.
        their_calls, our_calls = os.pipe()
        our_words, their_words = os.pipe()
        theirs = (their_calls, their_words)
        # Not by multiprocessing, which would run the main module of the user once more. What code
        # of authors prints goes where our log goes: standard output is the command's.
        module = "delta_outbox.workflow_engine.hosts.host"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-u", "-m", module, *map(str, (*theirs, os.getpid()))],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=theirs,
                start_new_session=True,
            )
        except OSError:
            os.close(our_calls)
            os.close(our_words)
            raise
        finally:
            os.close(their_calls)
            os.close(their_words)
        self._calls: Any = os.fdopen(our_calls, "wb", buffering=0)
        self._words: Any = os.fdopen(our_words, "rb")
        self._is_reading = True
        self._reading = self._loop.create_task(self._read(first_line))
        self._look()

    @property
    def is_fresh(self) -> bool:
        """Say whether it takes calls, or will when it is ready."""
        return not (self.is_worn or self._why is not None)

    @property
    def is_open(self) -> bool:
        """Say whether it takes calls, and need not be renewed."""
        return self.is_usable and not self.is_worn

    @property
    def is_usable(self) -> bool:
        """Say whether it can carry out calls, though it may be time to renew it."""
        return bool(self.tasks) and not self._hangs and self._why is None

    @property
    def is_worn(self) -> bool:
        """Say whether it is to be ended when nothing runs in it."""
        return self._hangs or self._has_grown or self._calls_left <= 0

    @property
    def load(self) -> int:
        """Return how many calls run in it."""
        return len(self._running)

    async def ready(self) -> None:
        """Wait until it has loaded the workflows; to be called once.

        Raises:
            OutboxError: as the host tells it; it is gone then, or will be.
        """
        try:
            async with asyncio.timeout(START_LIMIT):
                await self._ready
        except TimeoutError:
            self.end("it was not ready in time")
            raise HostNotStarted(
                f"A host of workflows was not ready within {START_LIMIT:.0f} seconds."
            ) from None

    # --- calls -----------------------------------------------------------------------------------

    def begin(self, call: Call, *, limit: float, acts: bool) -> RunningCall:
        """Have a call carried out.

        A call that is over its limit is cancelled. If it does not end within a grace, what may act
        is ended with its host; a question goes unanswered, and the host takes no new calls.

        Args:
            call: with its deadline.
            limit: seconds that it may take from its start.
            acts: whether it may change something at the third party.
        """
        number = next(self._numbers)
        wait = max(0.0, call.deadline - boot_time())
        running = RunningCall(
            name=f"{call.workflow}/{call.task}.{call.function}",
            acts=acts,
            limit=limit,
            word=self._loop.create_future(),
            # After its deadline it will not start; a host that does not even say so is blocked.
            timer=self._loop.call_later(
                wait + GRACE, self._over, number, "did not begin by its deadline"
            ),
            cut=partial(self._over, number, "was cancelled"),
        )
        self._running[number] = running
        self._calls_left -= 1
        self._calls.write(line_of({"id": number, "call": asdict(call)}))
        return running

    def _over(self, number: int, why: str) -> None:
        if (running := self._running.get(number)) is None or running.over:
            return
        running.over = why
        self._calls.write(line_of({"cancel": number}))
        self._arm(running, GRACE, self._give_up, number)

    def _give_up(self, number: int) -> None:
        running = self._running[number]
        if running.acts:
            self.end(f"{running.name} {running.over}")
        else:
            self._hangs = True
            why = f"no answer: it {running.over}"
            lost = Lost(why, host_gone=False) if running.started else NotStarted(why)
            self._end_call(number, lost)
            self._changed()

    def _arm(
        self, running: RunningCall, seconds: float, then: Callable[..., None], *values: Any
    ) -> None:
        running.timer.cancel()
        running.timer = self._loop.call_later(max(0.0, seconds), then, *values)

    def _end_call(self, number: int, word: Word) -> None:
        running = self._running.pop(number)
        running.timer.cancel()
        if not running.word.done():
            running.word.set_result(word)

    # --- what it says ----------------------------------------------------------------------------

    async def _read(self, setup: bytes) -> None:
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        try:
            # What is no line of ours, or too long, comes from a host that is not in order.
            with contextlib.suppress(ValueError, LookupError, TypeError, OSError, RecursionError):
                self._words, _ = await self._loop.connect_read_pipe(
                    lambda: asyncio.StreamReaderProtocol(reader), self._words
                )
                self._calls, _ = await self._loop.connect_write_pipe(
                    asyncio.BaseProtocol, self._calls
                )
                self._calls.write(setup)
                while (line := await reader.readline()).endswith(b"\n"):
                    self._heard(json.loads(line))
                self._drained = True
        finally:
            self._is_reading = False
            self.end("")
            await self._gone()

    def _heard(self, message: dict[str, Any]) -> None:
        if "guard" in message:
            self._guard = message["guard"]
        elif "tasks" in message:
            tasks = {name: TaskFacts(**one) for name, one in message["tasks"].items()}
            if self._expects and tasks != self._expects:
                self._is_ready(HostNotStarted(_CHANGED, remedy="Start this process again."))
                self.end("it has loaded other workflows")
                return
            self.tasks = tasks
            self._is_ready(None)
            self._changed()
        elif "failed" in message:
            self._is_ready(ToldError(message["failed"]))
        elif "started" in message:
            if (running := self._running.get(message["started"])) is not None:
                running.started = True
                left = message["at"] + running.limit - boot_time()
                if not running.over:
                    why = f"did not end within its time limit of {running.limit:g} seconds"
                    self._arm(running, left, self._over, message["started"], why)
        else:
            self._has_grown |= message["worn"]
            if (running := self._running.get(message["answered"])) is not None:
                self._end_call(message["answered"], _word(message, running))
            self._changed()

    def _is_ready(self, error: OutboxError | None) -> None:
        if self._ready.done():  # it was given up
            return
        if error is None:
            self._ready.set_result(None)
        else:
            self._ready.set_exception(error)

    def end(self, why: str) -> None:
        """End the process and all that it has started, whatever it does.

        Args:
            why: for those whose calls run in it; empty if it ended by itself.
        """
        if self._why is not None:
            return
        self._why = why
        # It was not waited for, or just now: its number, and that of its group, are still its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # Who has left its group may hold its pipe open.
        self._loop.call_later(2 * GRACE, self._read_no_more)

    def _look(self) -> None:
        """Notice its death also where another process holds its pipe open."""
        if not self._is_reading:
            return
        if self._process.poll() is not None:
            self.end("")
        else:
            self._loop.call_later(GRACE, self._look)

    def _read_no_more(self) -> None:
        if self._is_reading:
            self._reading.cancel()

    async def _gone(self) -> None:
        # The end of a process is not announced to a thread other than the main one.
        until = boot_time() + DEATH_LIMIT
        while (code := self._process.poll()) is None and boot_time() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        self._calls.close()
        self._words.close()
        why = self._why or f"its host {_ended(code)}"
        self._is_ready(HostNotStarted(f"A host of workflows {_ended(code)}."))
        for number, running in list(self._running.items()):
            lost: Word
            if running.started or not self._drained or code is None:
                words = f"no answer: {f'it {running.over}' if running.over else why}"
                lost = Lost(words, host_gone=not running.over)
            else:
                lost = NotStarted(why)
            self._end_call(number, lost)
        while code is not None and self._leaves_processes() and boot_time() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        self.is_gone = True
        logger.info("host ended", extra={"process_id": self._process.pid, "why": why})
        self._changed()

    def _leaves_processes(self) -> bool:
        its = (self._guard, -self._process.pid)
        return bool([one for one in its if one is not None and is_left(one)])


def _word(message: dict[str, Any], running: RunningCall) -> Word:
    """Return what is known of a call that was answered."""
    if "value" in message:
        return Answered(message["value"])
    told = Told(**message["error"])
    if told.kind == "not_begun":
        return NotStarted(told.message)
    if running.over and told.kind == "unsure":
        return Lost(f"no answer: it {running.over}", host_gone=False)
    return told


def _ended(code: int | None) -> str:
    if code is None:
        return "does not end"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
