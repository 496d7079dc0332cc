"""The hosts of a relay: attempts are submitted to them as long as they have room.

Two kinds of hosts run the same code. In a shared host many calls run beside each other; what ends
it ends them all. A black box, whose uncertainty costs most, has a host to itself while it runs.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import math
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from delta_outbox.core.clock import Clock, SystemClock, boot_time
from delta_outbox.core.errors import OutboxError
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.algorithms.steps import AttemptEnding
from delta_outbox.workflow_engine.hosts.attempts import (
    PAUSE,
    AttemptReport,
    AttemptRequest,
    AttemptRun,
)
from delta_outbox.workflow_engine.hosts.call import Setup, TaskFacts
from delta_outbox.workflow_engine.hosts.host_process import HostNotStarted, HostProcess
from delta_outbox.workflow_engine.hosts.places import HostLimits, Places, kind_of

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

_CUT_LIMIT: Final = 5.0  # seconds: what was cut is ended, and each of its decisions has a second
_LONGEST_PAUSE: Final = 30.0  # seconds, before another host is started after one did not start


class HostPool:
    """The hosts of one relay.

    Its methods may be called in any thread; what becomes of hosts is decided in a thread of theirs.

    Args:
        setup: the modules of workflows, and the settings of their third parties.
        limits: of this machine.
        clock: for the expiry of tasks.

    Raises:
        OutboxError: the workflows cannot be loaded, as a host tells it.
    """

    def __init__(
        self, setup: Setup, *, limits: HostLimits | None = None, clock: Clock | None = None
    ) -> None:
        self._setup, self._limits = setup, limits or HostLimits()
        self._clock = clock or SystemClock()
        self.tasks: Mapping[str, TaskFacts] = {}
        """What is known of each task, by `workflow/task`."""
        self.problem: str | None = None
        """Why the last host that was to be started could not be; None if it could."""
        self._shared: list[HostProcess] = []
        self._alone: list[HostProcess] = []
        self._running: set[AttemptRun] = set()
        self._is_closing = False
        self._closing = threading.Lock()  # what is submitted is under way when closing begins
        self._cuts_at = math.inf  # by the boot-time clock; what still runs then is cut
        self._pause = 0.0  # seconds, after hosts that did not start
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._starting: set[asyncio.Task[None]] = set()
        self._resumes_at = 0.0
        # To the kernel this thread is the parent of the hosts: it ends after them.
        self._thread = threading.Thread(target=self._run, name="workflow hosts", daemon=True)
        self._thread.start()
        try:
            self._do(self._open()).result()
        except BaseException:
            self.close()
            raise
        self._places = Places(self._limits, self.tasks)

    # --- for the relay ---------------------------------------------------------------------------

    def room(self, workflow: str, task: str) -> int:
        """Return how many attempts of a task may be claimed now.

        Args:
            workflow: its name.
            task: its name.
        """
        if self._is_closing or not self._has_open_host:
            return 0
        return self._places.room(self.tasks[f"{workflow}/{task}"])

    @property
    def is_starting(self) -> bool:
        """Say whether hosts start in place of those that are gone; none that did failed to."""
        return not (self._is_closing or self._pause or self._has_open_host)

    @property
    def _has_open_host(self) -> bool:
        return bool(_open_ones([*self._shared]))

    def submit(self, request: AttemptRequest) -> concurrent.futures.Future[AttemptReport]:
        """Make an attempt; what there is no room for is released, and no call of it is made.

        Args:
            request: what is to be done.

        Returns:
            What will have become of it, not to be cancelled; an exception of it is a fault of ours,
            and the attempt may have acted.
        """
        facts = self.tasks[f"{request.workflow}/{request.task}"]
        alone = kind_of(facts) == "alone"
        run = AttemptRun(request, facts, self, self._clock, alone=alone)
        with self._closing:
            if not self._is_closing and self._places.take(facts):
                return self._do(self._make(run, facts))
        report: concurrent.futures.Future[AttemptReport] = concurrent.futures.Future()
        released = AttemptEnding(reason=Reason.RELEASED, pause=PAUSE)
        report.set_result(AttemptReport(ending=released))
        return report

    def begin_to_close(self, seconds: float) -> None:
        """Take no more attempts, and end the hosts in the background. What runs has some time to
        end; what is left then is cancelled. Where this is called again, the shortest time counts.

        Args:
            seconds: how long to wait for attempts.
        """
        with self._closing, contextlib.suppress(RuntimeError):  # the loop is closed: all has ended
            self._is_closing = True
            self._loop.call_soon_threadsafe(self._cut_by, boot_time() + seconds)

    def close(self) -> None:
        """End the hosts, and cancel what runs.

        All reports are there when this returns: after at most 5 seconds, while decisions are still
        asked for, and the time that the kernel takes to end processes, at most 11 seconds.
        """
        self.begin_to_close(0.0)
        self._thread.join()

    @property
    def is_closed(self) -> bool:
        """Say whether all hosts have ended."""
        return not self._thread.is_alive()

    def _do(self, what: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(what, self._loop)

    # --- in the thread of the hosts --------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        finally:
            self._loop.close()

    async def _make(self, run: AttemptRun, facts: TaskFacts) -> AttemptReport:
        self._running.add(run)
        try:
            return await run.run()
        finally:
            self._running.discard(run)
            self._places.give(facts)
            self._tell()

    async def _open(self) -> None:
        first = self._begun(self._shared)
        await first.ready()
        self.tasks = first.tasks
        self._look()

    def _cut_by(self, moment: float) -> None:
        self._cuts_at = min(self._cuts_at, moment)
        self._tell()

    async def _live(self) -> None:
        await self._until(lambda: self._cuts_at < math.inf)
        await self._until(lambda: not self._running, lambda: self._cuts_at)
        for run in self._running:
            run.cut()
        self._tell()
        latest = boot_time() + _CUT_LIMIT
        await self._until(lambda: not self._running, lambda: latest)
        for host in (*self._shared, *self._alone):
            host.end("the hosts are closed")
        await self._until(lambda: not (self._shared or self._alone or self._running))
        await asyncio.gather(*self._starting)

    async def host(
        self, *, alone: bool, until: float, wanted: Callable[[], bool]
    ) -> HostProcess | None:
        """Return a host that takes a call at once, None if there is none until a moment.

        Args:
            alone: it runs nothing else.
            until: by the boot-time clock.
            wanted: whether it still is.
        """
        hosts = self._alone if alone else self._shared

        def find() -> HostProcess | None:
            found = [one for one in _open_ones(hosts) if not (alone and one.load)]
            is_starting = any(one.is_fresh and not one.is_open for one in hosts)
            if alone and not (found or is_starting):
                self._start(hosts, min(self._limits.hosts, len(hosts) + 1))
            return min(found, key=lambda one: one.load, default=None)

        def hopeless() -> bool:
            return self._is_closing and not any(one.is_fresh for one in hosts)

        await self._until(lambda: find() is not None or not wanted() or hopeless(), lambda: until)
        return find()

    async def _until(
        self, fact: Callable[[], bool], until: Callable[[], float] = lambda: math.inf
    ) -> None:
        """Wait for a fact, at most until a moment of the boot-time clock."""
        while not fact():
            left = until() - boot_time()
            if left <= 0:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if left == math.inf else left):
                    await self._changed.wait()

    def _tell(self) -> None:
        """Wake whoever waits for a fact."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _look(self) -> None:
        """Put hosts aside that are gone or worn, and start others instead."""
        for hosts in (self._shared, self._alone):
            for host in [*hosts]:
                if host.is_gone:
                    hosts.remove(host)
                elif host.is_worn and not host.load:
                    host.end("it is renewed")
        fresh = sum(1 for one in self._shared if one.is_fresh)
        if self.tasks and fresh < (wanted := self._limits.shared_hosts):
            # Beside those that are worn and still at work, unless these are too many.
            self._start(self._shared, min(2 * wanted, len(self._shared) + wanted - fresh))
        self._tell()

    def _start(self, hosts: list[HostProcess], most: int) -> None:
        while len(hosts) < most and not self._is_closing and self._loop.time() >= self._resumes_at:
            try:
                task = self._loop.create_task(self._try_to_start(self._begun(hosts)))
            except HostNotStarted as error:
                self._later(error)
                return
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    def _begun(self, hosts: list[HostProcess]) -> HostProcess:
        try:
            host = HostProcess(
                self._setup, expects=self.tasks, calls=self._limits.calls, changed=self._look
            )
        except OSError as error:
            raise HostNotStarted(f"A host of workflows cannot be started: {error}.") from error
        hosts.append(host)
        return host

    async def _try_to_start(self, host: HostProcess) -> None:
        try:
            await host.ready()
            self._pause, self.problem = 0.0, None
        except OutboxError as error:
            if not self._is_closing:
                self._later(error)

    def _later(self, error: OutboxError) -> None:
        logger.warning("host not started", extra={"error": error.as_dict()})
        self.problem = f"{error} {error.remedy}"
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause or 1.0)
        self._resumes_at = self._loop.time() + self._pause
        self._loop.call_later(self._pause, self._look)


def _open_ones(hosts: Sequence[HostProcess]) -> list[HostProcess]:
    """Return the hosts that take calls. Where all are to be renewed, and none is on its way in
    their place, the youngest goes on: one long call in each must not stop everything. The others
    come to their end meanwhile.
    """
    if any(one.is_fresh for one in hosts):
        return [one for one in hosts if one.is_open]
    return [one for one in hosts if one.is_usable][-1:]
