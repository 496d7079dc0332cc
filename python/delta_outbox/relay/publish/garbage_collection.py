"""Makes Python's search for unreachable cycles rarer while many objects are made."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

OBJECTS: Final = 100_000  # made, and not let go, between two searches; 700 by default


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Search for cycles seldom during a block.

    An event and its answer are a dozen objects that live as long as their batch. By default they
    are walked through again and again meanwhile: measured, more than half of a worker's time.

    For workers only. In a driver, what the JVM holds for a DataFrame is let go when Python finds
    its cycle: a relay that searches seldom fills the heap of its JVM with old plans.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(OBJECTS, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
