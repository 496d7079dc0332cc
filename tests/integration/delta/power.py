"""A disk that remembers what was synced, and a power cut that takes everything else."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from delta_outbox.core import disk

# What Delta notes of each version, so that a writer need not read all of it, and Hadoop of that.
_WORTHLESS = re.compile(r"\d{20}\.crc|\.\d{20}\.crc\.crc")

_State = tuple[int, int, int]


class Disk:
    """What of a folder is on the disk: contents of files, and names in folders.

    What is there at the beginning is. From then on a file is as it was when it was synced, and a
    name is there if its folder was synced since: as cruel as a file system may be.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._files: dict[Path, _State] = {}
        self._names: dict[Path, set[str]] = {}
        self.syncs = 0
        self.note(self._root, everything=True)

    def note(self, path: Path, *, everything: bool = False) -> None:
        """Note that a file or a folder is synced, or everything."""
        self.syncs += 1
        if not everything:
            self._note(path)
            return
        for folder, _, names in os.walk(self._root):
            for found in (Path(folder), *(Path(folder, name) for name in names)):
                self._note(found)

    def _note(self, path: Path) -> None:
        try:
            if path.is_dir():
                self._names[path] = {found.name for found in path.iterdir()}
            else:
                self._files[path] = _state(path)
        except FileNotFoundError:  # removed just now
            return

    def unsynced(self, folder: Path) -> list[Path]:
        """Return what a power cut would take below a folder, but for what nobody misses.

        Args:
            folder: of tables.
        """
        found = []
        for at, _, names in os.walk(folder):
            known = self._names.get(Path(at), set())
            for name in names:
                path = Path(at, name)
                if not _WORTHLESS.fullmatch(name) and not (
                    name in known and self._files.get(path) == _state(path)
                ):
                    found.append(path)
        return found

    def after_power_cut(self, to: Path, *, keeps_names: bool) -> None:
        """Copy the folder as it would be found after a power cut.

        Args:
            to: a new folder.
            keeps_names: a file whose name was not synced is there, and empty; else it is not there.
        """
        shutil.copytree(self._root, to, symlinks=True)
        for folder, _, names in os.walk(self._root):
            at = Path(folder)
            copied = to / at.relative_to(self._root)
            if not copied.exists():
                continue
            for gone in [*copied.iterdir()]:
                if keeps_names or gone.name in self._names.get(at, set()):
                    continue
                shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
            for name in names:
                file = copied / name
                if file.exists() and self._files.get(at / name) != _state(at / name):
                    os.truncate(file, 0)


def _state(path: Path) -> _State:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def remembered(root: Path) -> Iterator[Disk]:
    """Remember for a block what this process syncs below a folder, and sync it.

    Args:
        root: the folder.
    """
    seen = Disk(root)
    fsync, sync_file_system = os.fsync, disk._sync_file_system

    def one(descriptor: int) -> None:
        seen.note(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    def everything(descriptor: int) -> bool:
        seen.note(root, everything=True)
        return sync_file_system(descriptor)

    with (
        mock.patch.object(os, "fsync", one),
        mock.patch.object(disk, "_sync_file_system", everything),
    ):
        yield seen
