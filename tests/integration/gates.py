"""Let two threads take turns at gates, so that a race goes the same way every time."""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from delta_outbox.delta.files.log_store import LogStore

if TYPE_CHECKING:
    import pyarrow as pa
    import pytest
    from pyspark.sql import DataFrame, SparkSession

EVERY_ORDER = os.environ.get("OUTBOX_RACES") == "all"  # `make soak` wants them all
FEW = 3  # orders; of so few, each is a race of its own
PATIENCE = 240.0  # seconds for one step on a busy machine

T = TypeVar("T")
Gate = Callable[[], None]
Part = Callable[[Gate], None]


def orders(steps_of_a: int, steps_of_b: int | None = None) -> list[str]:
    """Return every order of the steps of two writers, such as `abab`; where they are many, a few,
    unless OUTBOX_RACES=all, as in `make soak`.

    Args:
        steps_of_a: how many steps the one takes.
        steps_of_b: how many the other takes; if left out, the two do the same, and only the
            orders that `a` begins are returned.
    """
    total = steps_of_a + (steps_of_a if steps_of_b is None else steps_of_b)
    found = [
        "".join("a" if place in places else "b" for place in range(total))
        for places in itertools.combinations(range(total), steps_of_a)
    ]
    every = [order for order in found if steps_of_b is not None or order[0] == "a"]
    return every if EVERY_ORDER else every[:: -(-len(every) // FEW)]


def more(*cases: T) -> tuple[T, ...]:
    """Return cases of a test that are tried with OUTBOX_RACES=all only, as in `make soak`.

    Args:
        cases: each like another one that is always tried.
    """
    return cases if EVERY_ORDER else ()


def play(order: str, **parts: Part) -> None:
    """Run parts on threads of their own, one at a time, from gate to gate.

    Each first runs to its first gate. Then each letter of the order lets the part of that name
    through the gate at which it waits, and on to its next one. What is left then runs to its end,
    part by part.

    Args:
        order: names of parts.
        parts: each is given its gate, a function to call where it is to wait for its turn.

    Raises:
        Exception: what a part raised.
    """
    runners = {name: _Runner(part) for name, part in parts.items()}
    for turn in itertools.chain(runners, order):
        runners[turn].go_on()
    for runner in runners.values():
        while not runner.is_over:
            runner.go_on()
    for runner in runners.values():
        if runner.error is not None:
            raise runner.error


class _Runner:
    def __init__(self, part: Part) -> None:
        self._part = part
        self._go = threading.Semaphore(0)
        self._stands = threading.Semaphore(0)
        self.is_over = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        """Let the part run to its next gate, or to its end."""
        if self.is_over:
            return
        self._go.release()
        assert self._stands.acquire(timeout=PATIENCE), "a part comes to no gate"

    def _run(self) -> None:
        self._go.acquire()
        try:
            self._part(self._gate)
        except BaseException as error:  # noqa: BLE001 - raised where the parts were started
            self.error = error
        self.is_over = True
        self._stands.release()

    def _gate(self) -> None:
        self._stands.release()
        self._go.acquire()


def stop_before(
    target: object, name: str, gate: Gate, patch: pytest.MonkeyPatch | None = None
) -> None:
    """Make a method of one object wait for its turn.

    Args:
        target: the object.
        name: the method.
        gate: where it waits.
        patch: ends it; for good if left out.
    """
    call = getattr(target, name)

    def waits(*args: Any, **kwargs: Any) -> Any:
        gate()
        return call(*args, **kwargs)

    if patch is None:
        setattr(target, name, waits)
    else:
        patch.setattr(target, name, waits)


class StopBeforeCommit:
    """A session whose writes wait for their turn inside Delta's transaction.

    Delta has read the table by then, and commits as soon as the rows are there; the rows come from
    a task that waits. A write that Delta skips runs no task, and does not wait.

    Args:
        spark: the session.
        gate: where a write waits.
        folder: for the files by which the tasks are told.
    """

    def __init__(self, spark: SparkSession, gate: Gate, folder: Path) -> None:
        self._spark = spark
        self._gate = gate
        self._folder = folder
        self._writing = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def createDataFrame(self, rows: pa.Table) -> DataFrame:  # noqa: N802 - as Spark has it
        """Return a frame whose rows come when it is their turn."""
        frame = self._spark.createDataFrame(rows)
        mark = self._folder / uuid.uuid4().hex
        self._skip()
        self._writing = threading.Event()
        threading.Thread(target=self._watch, args=(mark, self._writing), daemon=True).start()
        return frame.mapInArrow(_held(str(mark), PATIENCE), frame.schema)

    def sql(self, text: str) -> DataFrame:
        """Run a query: the write before it is over."""
        self._skip()
        return self._spark.sql(text)

    def _skip(self) -> None:
        self._writing.set()

    def _watch(self, mark: Path, over: threading.Event) -> None:
        while not mark.with_suffix(".begun").exists():
            if over.wait(0.02):
                return
        self._gate()
        mark.with_suffix(".go").touch()


class StopBeforePut:
    """Appends by files that wait for their turn: all is read and written, nothing is committed.

    Args:
        patch: ends it.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._gates = threading.local()
        put = LogStore.put

        def waits(store: Any, *args: Any, **kwargs: Any) -> bool:
            gate: Gate | None = getattr(self._gates, "gate", None)
            if gate is not None:
                gate()
            return put(store, *args, **kwargs)

        patch.setattr(LogStore, "put", waits)

    def session(self, spark: SparkSession, gate: Gate) -> SparkSession:
        """Return a session of its own; what this thread appends waits for its turn.

        Args:
            spark: the session.
            gate: where an append waits.
        """
        self._gates.gate = gate
        return spark.newSession()


def _held(mark: str, patience: float) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def hold(batches: Iterable[Any]) -> Iterator[Any]:
        import time
        from pathlib import Path as File

        File(f"{mark}.begun").touch()
        until = time.monotonic() + patience
        while not File(f"{mark}.go").exists() and time.monotonic() < until:
            time.sleep(0.02)
        yield from batches

    return hold


def places(order: str, name: str) -> Sequence[int]:
    """Return where in an order the steps of a part are."""
    return [place for place, turn in enumerate(order) if turn == name]
