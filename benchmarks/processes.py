"""Processes of their own for what is measured, and what memory they take."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final, ParamSpec, TypeVar

import psutil
from benchmarks.results import BenchmarkFailed

from delta_outbox.cli.logs import quieten_pyspark
from delta_outbox.core.errors import OutboxError

P = ParamSpec("P")
T = TypeVar("T")

MIB: Final = 1024**2
_LOOK: Final = 0.5  # seconds between looks at memory


def in_own_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a new process and return what it returns.

    Whatever the caller keeps in memory does not count for the function, and the other way round.

    Args:
        function: of a module; what goes in and comes out can be pickled.
        args: its arguments.
        kwargs: its arguments.

    Raises:
        BenchmarkFailed: a check of the function failed, or the outbox refused something.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context, initializer=_begin) as pool:
        return pool.submit(_call, partial(function, *args, **kwargs)).result()


def _begin() -> None:
    quieten_pyspark()


def _call(work: Callable[[], T]) -> T:
    try:
        return work()
    except OutboxError as error:  # some of them cannot be sent to another process
        raise BenchmarkFailed(f"{type(error).__name__}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory that processes take, resident, in MiB; one figure for each look.

    Args:
        driver: of this process.
        workers: of the Python workers of its JVM together.
        worker: of the largest of them.
        jvm: of the JVM.
    """

    driver: list[float] = field(default_factory=list)
    workers: list[float] = field(default_factory=list)
    worker: list[float] = field(default_factory=list)
    jvm: list[float] = field(default_factory=list)

    def look(self) -> None:
        """Note what is taken now."""
        this = psutil.Process()
        self.driver.append(this.memory_info().rss / MIB)
        workers = [0.0]
        for child in this.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                taken = child.memory_info().rss / MIB
                if child.name() == "java":
                    self.jvm.append(taken)
                elif child.name().startswith("python"):
                    workers.append(taken)
        self.workers.append(sum(workers))
        self.worker.append(max(workers))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look again and again while a block runs."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_LOOK):
                self.look()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
