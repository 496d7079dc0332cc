"""Asks the operating system to write files and folders to the disk.

A file that was written, closed and renamed is in the memory of the machine; the system writes it
out within half a minute or so. Until then a power cut leaves it empty, or takes its name away.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# macOS: fsync only hands a file to the drive, which keeps it in a memory of its own.
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


def sync_descriptor(descriptor: int) -> None:
    """Return when an open file, or the names in an open folder, are on the disk.

    Args:
        descriptor: of the file or folder.

    Raises:
        OSError: the disk did not take it; to ask again proves nothing.
    """
    if _FULL_SYNC is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, _FULL_SYNC)


def sync_path(path: Path) -> None:
    """Return when a file, or the names in a folder, are on the disk, whoever wrote them.

    Args:
        path: of the file or folder.

    Raises:
        FileNotFoundError: there is none.
        OSError: the disk did not take it.
    """
    with _opened(path) as descriptor:
        sync_descriptor(descriptor)


def sync_below(folders: Iterable[Path]) -> None:
    """Return when everything below folders is on the disk, whoever wrote it.

    Linux does that for a whole file system at once. Elsewhere each file is synced.

    Args:
        folders: of which files may come and go meanwhile.

    Raises:
        OSError: the disk did not take it.
    """
    devices = set()
    for folder in folders:
        with _opened(folder) as descriptor:
            device = os.fstat(descriptor).st_dev
            if device in devices:
                continue
            if _sync_file_system(descriptor):
                devices.add(device)
                continue
        for found, _, names in os.walk(folder, onerror=_unless_gone):
            for path in (*(Path(found, name) for name in names), Path(found)):
                try:
                    sync_path(path)
                except FileNotFoundError:
                    continue


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def checksum_of(path: Path) -> Path:
    """Return the file in which Hadoop keeps the checksums of another, if it has written that.

    Args:
        path: of the other.
    """
    return path.with_name(f".{path.name}.crc")


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, with their names on the disk.

    Args:
        folder: to be made; one that is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    missing = []
    at = folder
    while not at.exists():
        missing.append(at)
        at = at.parent
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_path(made.parent)


def _sync_file_system(descriptor: int) -> bool:
    """Sync the file system of an open folder; False if this system cannot be asked for that."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):
        return False
    if library.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
