"""The workers of Spark that publish for one relay."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.relay.publish import slice as worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Workers:
    """Starts workers, and tells whether they have begun.

    Args:
        spark: the session.
        parallelism: how many publish at once.
        folder: where a sign is left for workers of this machine; None for nowhere.
    """

    def __init__(self, spark: SparkSession, *, parallelism: int, folder: Path | None) -> None:
        self._spark = spark
        self._parallelism = parallelism
        self._folder = folder
        self._starting = threading.Lock()
        self._have_started = False
        self._are_here = False

    def start(self) -> None:
        """Start them before the first claim: a lease is not spent on a cold start. Whoever asks
        while they are being started waits for them.
        """
        with self._starting:
            if not self._have_started:
                self._are_here = self._start()
                self._have_started = True

    def _start(self) -> bool:
        """Start them, and say whether all of them see the files of this machine."""
        with self._sign() as sign:
            path = None if sign is None else str(sign)

            def ready(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                assert worker.RESULTS  # imported here, as it will be by a slice
                is_here = path is not None and Path(path).exists()
                for batch in batches:
                    yield pa.RecordBatch.from_pydict({"is_here": [is_here] * len(batch)})

            found = (
                self._spark.range(self._parallelism, numPartitions=self._parallelism)
                .mapInArrow(ready, "is_here boolean")
                .toArrow()
            )
        return bool(pc.all(found["is_here"]).as_py())

    @contextlib.contextmanager
    def unbegun(self) -> Iterator[Path | None]:
        """Make a file for a block that the first worker removes before it sends anything: also on a
        disk that is full. None if nobody knows whether workers see it.

        Raises:
            OSError: there is no room for it.
        """
        with self._sign() as sign:
            yield sign if self._are_here else None

    @contextlib.contextmanager
    def _sign(self) -> Iterator[Path | None]:
        if self._folder is None:
            yield None
            return
        sign = self._folder / f"unbegun-{uuid.uuid4().hex}"
        sign.touch()
        try:
            yield sign
        finally:
            sign.unlink(missing_ok=True)
