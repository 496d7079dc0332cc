"""Gives each claim in flight a producer slot: a name to send under, none used twice at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ProducerSlots:
    """The slots of one relay; claims that are published at the same time have different ones.

    Args:
        worker_id: of the relay, which no other has.
    """

    def __init__(self, worker_id: str) -> None:
        self._worker_id = worker_id
        self._lock = threading.Lock()
        self._in_use: set[int] = set()

    @contextmanager
    def taken(self) -> Iterator[str]:
        """Hold the first slot that is free for a block, and give its name."""
        with self._lock:
            number = next(one for one in itertools.count() if one not in self._in_use)
            self._in_use.add(number)
        try:
            yield f"{self._worker_id}.{number}"
        finally:
            with self._lock:
                self._in_use.remove(number)
