"""Locks on files, which end with whoever holds the open file."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from delta_outbox.core.errors import NoLocks
from delta_outbox.runtime.ownership import open_own

# NFS whose lock service does not run or has no room, and file systems that know of no locks.
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})


def lock(descriptor: int, operation: int, *, path: Path) -> None:
    """Lock an open file as `flock` does.

    Args:
        descriptor: of the file.
        operation: as `fcntl.flock` takes it.
        path: of the file, for the error.

    Raises:
        BlockingIOError: somebody else holds it, and it was not to be waited for.
        NoLocks: the file system takes no locks.
    """
    try:
        fcntl.flock(descriptor, operation)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise NoLocks(file=path, cause=os.strerror(error.errno)) from error
        raise


@contextmanager
def file_locked(path: Path) -> Iterator[None]:
    """Hold a lock for a block; whoever else wants it waits. It ends with its process.

    Args:
        path: its file, which is created together with its folder and stays.

    Raises:
        NoLocks: its file system takes no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT), "w", encoding="utf-8") as file:
        lock(file.fileno(), fcntl.LOCK_EX, path=path)
        yield
