"""A lock between the processes of one machine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delta_outbox.ownership import open_own


@contextmanager
def file_locked(path: Path) -> Iterator[None]:
    """Hold a lock for a block; whoever else wants it waits. It ends with its process.

    Args:
        path: its file, which is created together with its folder and stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
