"""Runs an application of items as its server does, on loopback."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI

from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.server import listening, run


@contextmanager
def serving(app: FastAPI, settings: TodoSettings) -> Iterator[str]:
    """Serve an application for a block, and yield its address.

    Args:
        app: answers requests.
        settings: `[todo]`.
    """
    stop, places = threading.Event(), queue.Queue[str]()
    with listening("127.0.0.1", 0) as listener:
        server = threading.Thread(
            target=lambda: asyncio.run(run(app, settings, listener, stop, places.put))
        )
        server.start()
        try:
            yield places.get(timeout=30)
        finally:
            stop.set()
            server.join()
