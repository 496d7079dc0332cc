"""Workers are started once, by whoever comes first, and nobody publishes before they are there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

from delta_outbox.relay.publish.workers import Workers


class Tasks:
    """Tasks that run here, when they are let.

    Args:
        may_run: waited for.
    """

    def __init__(self, may_run: threading.Event) -> None:
        self._may_run = may_run
        self.starts = 0
        self.run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def range(self, count: int, **_: int) -> Self:
        self.count = count
        return self

    def mapInArrow(self, run: Any, _: str) -> Self:  # noqa: N802 - Spark's name
        self.starts += 1
        self.run = run
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        assert self._may_run.wait(60)
        return pa.Table.from_batches(self.run([pa.record_batch({"id": range(self.count)})]))


def workers(tasks: Any, folder: Path | None) -> Workers:
    """Return two workers."""
    return Workers(tasks, parallelism=2, folder=folder)


def test_they_are_started_once(tmp_path: Path) -> None:
    """Who asks while they are being started returns when they are there, and starts no others."""
    may_run = threading.Event()
    tasks = Tasks(may_run)
    both = workers(tasks, tmp_path)
    asking = [threading.Thread(target=both.start) for _ in range(2)]
    for thread in asking:
        thread.start()
    asking[1].join(0.05)
    assert [True, True] == [thread.is_alive() for thread in asking]
    may_run.set()
    for thread in asking:
        thread.join()
    both.start()
    assert 1 == tasks.starts
    assert [] == list(tmp_path.iterdir())


def test_a_start_that_fails_is_tried_again(tmp_path: Path) -> None:
    """The error of a start beside something else is seen by nobody: the next one raises it too."""
    may_run = threading.Event()
    may_run.set()
    tasks = Tasks(may_run)
    both = workers(tasks, tmp_path / "gone")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            both.start()
    (tmp_path / "gone").mkdir()
    both.start()
    assert 1 == tasks.starts


def test_a_sign_is_for_workers_that_see_it(tmp_path: Path) -> None:
    """Whether a worker has begun is known only where all of them see the files of this machine."""
    may_run = threading.Event()
    may_run.set()
    here, elsewhere = workers(Tasks(may_run), tmp_path), workers(Tasks(may_run), None)
    with here.unbegun() as sign:
        assert None is sign  # not known yet
    here.start()
    elsewhere.start()
    with here.unbegun() as sign, elsewhere.unbegun() as none:
        assert sign is not None
        assert sign.exists()
        assert None is none
    assert [] == list(tmp_path.iterdir())
