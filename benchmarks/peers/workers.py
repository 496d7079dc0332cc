"""Several processes that begin together, and the seconds from then to the end of the last."""

from __future__ import annotations

import multiprocessing
import queue
import time
from collections.abc import Callable
from multiprocessing.context import SpawnContext
from typing import Any, Final

from benchmarks.results import BenchmarkFailed

_PATIENCE: Final = 120.0  # seconds until all have connected
_LOOK: Final = 5.0  # seconds between looks at whether they still live


def run_together(
    worker: Callable[..., None], processes: int, *, limit: float, **arguments: Any
) -> float:
    """Run a worker in several processes and return the seconds that they took together.

    Args:
        worker: called with `number`, `ready` and the arguments; it connects, calls `ready`, which
            waits for the others, and then does all there is to do.
        processes: how many.
        limit: seconds after which they have failed.
        arguments: of the worker.

    Raises:
        BenchmarkFailed: one of them failed, or took too long.
    """
    context: SpawnContext = multiprocessing.get_context("spawn")
    barrier, ends = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=_run, args=(worker, number, barrier, ends), kwargs=arguments)
        for number in range(processes)
    ]
    for process in running:
        process.start()
    spans: list[tuple[float, float]] = []
    deadline = time.monotonic() + limit + _PATIENCE
    try:
        while len(spans) < processes:
            try:
                spans.append(ends.get(timeout=_LOOK))
            except queue.Empty:
                if any(process.exitcode for process in running):
                    raise BenchmarkFailed(f"{worker.__module__}: a process failed.") from None
                if time.monotonic() > deadline:
                    raise BenchmarkFailed(
                        f"{worker.__module__}: not done in {limit:.0f} s."
                    ) from None
    finally:
        for process in running:
            if len(spans) < processes:
                process.kill()
            process.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)


def _run(
    worker: Callable[..., None], number: int, barrier: Any, ends: Any, **arguments: Any
) -> None:
    started: list[float] = []

    def ready() -> None:
        barrier.wait(_PATIENCE)
        started.append(time.time())

    worker(number=number, ready=ready, **arguments)
    ends.put((started[0], time.time()))
