"""A disk small enough to be filled, with folders that can be protected from writing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = 4096  # bytes; what the smallest file takes


class SmallDisk:
    """A file system of its own in memory, over a folder.

    It takes root, or a sudo that asks nothing. Root is not kept out by the mode of a file, so a
    folder is protected by mounting it once more, read-only.

    Args:
        folder: the folder; made if it is missing.
        mebibytes: its size.
    """

    def __init__(self, folder: Path, *, mebibytes: int = 32) -> None:
        self._folder = folder
        self._filler = folder / "filler"
        self._protected: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)
        mode = f"size={mebibytes}m,uid={os.getuid()},gid={os.getgid()}"
        _as_root("mount", "-t", "tmpfs", "-o", mode, "tmpfs", str(folder))

    def fill(self, *, leaving: int = 0) -> None:
        """Use up the room.

        Args:
            leaving: pages that stay free.
        """
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(64 * PAGE)):
                    pass
            except OSError:
                file.truncate(file.tell() - leaving * PAGE)

    def protect(self, folder: Path) -> None:
        """Let nobody write to a folder on the disk.

        Args:
            folder: the folder.
        """
        _as_root("mount", "--bind", str(folder), str(folder))
        self._protected.append(folder)
        _as_root("mount", "-o", "remount,bind,ro", str(folder))

    def mend(self) -> None:
        """Make room, and let everybody write again."""
        self._filler.unlink(missing_ok=True)
        while self._protected:
            _as_root("umount", "-l", str(self._protected.pop()))

    def close(self) -> None:
        """Take the disk away with all that is on it."""
        self.mend()
        _as_root("umount", "-l", str(self._folder))


def _as_root(*command: str) -> None:
    words = command if os.geteuid() == 0 else ("sudo", "-n", *command)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"A disk of its own takes root, or a sudo that asks nothing: {done.stderr}")
