"""Recognises a full disk and a missing right to write among the errors of a storage."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from delta_outbox.core.errors import DiskFull, NotWritable, OutboxError
from delta_outbox.core.redaction import scrub

# What operating systems and Hadoop's file systems say. The error classes of Java are no help: a
# full disk is an IOException, and a missing right a FileNotFoundException.
_FULL: Final = (
    "No space left on device",
    "Disk quota exceeded",
    "DSQuotaExceededException",
    "NSQuotaExceededException",
)
_DENIED: Final = (
    "(Permission denied)",
    ": Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "AccessControlException",
    "AccessDeniedException",
    "Mkdirs failed to create",
)
_FULL_NUMBERS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED_NUMBERS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def writing_to(table: str) -> Iterator[None]:
    """Say of a write within the block why the storage refused it.

    Args:
        table: what is written.

    Raises:
        DiskFull: there is no room.
        NotWritable: the right to write is missing.
    """
    try:
        yield
    except OutboxError:
        raise
    except Exception as error:
        refused = refused_write(error, table=table)
        if refused is None:
            raise
        raise refused from error


def refused_write(error: BaseException, *, table: str) -> DiskFull | NotWritable | None:
    """Return the error of ours if the storage refused a write, None for any other error.

    Args:
        error: what Spark or the operating system raised.
        table: what was written.
    """
    full = full_disk(error, table=table)
    if full is not None:
        return full
    cause = _cause(error, marks=_DENIED, numbers=_DENIED_NUMBERS)
    return None if cause is None else NotWritable(table=table, cause=cause)


def full_disk(error: BaseException, *, table: str) -> DiskFull | None:
    """Return the error of ours if there was no room for a write, None for any other error.

    Args:
        error: what Spark or the operating system raised.
        table: what was written.
    """
    cause = _cause(error, marks=_FULL, numbers=_FULL_NUMBERS)
    return None if cause is None else DiskFull(table=table, cause=cause)


def _cause(error: BaseException, *, marks: Collection[str], numbers: Collection[int]) -> str | None:
    """Return what an error or one of its causes says that has a mark; None if none has."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        text = _text(found)
        line = next((line for line in text.splitlines() if any(m in line for m in marks)), None)
        if line is not None or (isinstance(found, OSError) and found.errno in numbers):
            return scrub(text if line is None else line)
        # pyspark keeps the cause that Java names here.
        found = getattr(found, "_cause", None) or found.__cause__
    return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error of Java needs a JVM to say what it is
        return ""
