"""Stops a relay on SIGTERM and Ctrl-C, after it has recorded what was delivered."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

from delta_outbox.runtime.interrupts import INTERRUPTED, ends_in_order

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def stop_on_signals(
    stream: TextIO,
    *,
    first: str = "Stopping after what is in flight. Ctrl-C again ends at once.",
    second: str = "Ended at once: claims end when their leases are over.",
) -> Iterator[threading.Event]:
    """Set an event on SIGTERM or SIGINT, for a block; a second SIGINT ends the process at once.

    Enter it after the Spark session has started: pyspark installs a handler of its own then.
    Once it is set, what follows the block is not interrupted either: the command ends in order.
    Outside the main thread Python allows no handlers, and nothing is installed.

    Args:
        stream: standard error.
        first: what Ctrl-C is answered.
        second: what the next one is answered.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if stop.is_set() and number == signal.SIGINT:
            say(stream, second)
            os._exit(INTERRUPTED)
        if not stop.is_set() and number == signal.SIGINT:
            say(stream, first)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        if stop.is_set():
            ends_in_order()
        for number, handler in before.items():
            signal.signal(number, handler)


def say(stream: TextIO, sentence: str) -> None:
    """Write past buffers and locks: a handler runs in the middle of anything.

    Args:
        stream: standard error.
        sentence: one line.
    """
    with contextlib.suppress(OSError, ValueError):
        os.write(stream.fileno(), f"{sentence}\n".encode())
