"""The folder of a Delta log: its commits and its last checkpoint, read as files."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from delta_outbox.core.errors import TornCommit

LAST_CHECKPOINT: Final = "_last_checkpoint"
"""The file of a log that names its last checkpoint."""

COMMITS_LOOKED_AT: Final = 120
"""Back from the newest one, for what a table is like."""

_COMMIT: Final = re.compile(r"(\d{20})\.json")

Identity = tuple[int, int, int]


def last_checkpoint(folder: Path) -> int:
    """Return the version of the last checkpoint of a log; 0 if it has none that can be read.

    Args:
        folder: where Delta keeps the log of a table.
    """
    try:
        told = json.loads((folder / LAST_CHECKPOINT).read_text(encoding="utf-8"))
        return int(told["version"])
    except (FileNotFoundError, ValueError, KeyError):  # it may just be being written
        return 0


def commit_file(folder: Path, version: int) -> Path:
    """Return the file of a commit, there or not.

    Args:
        folder: where Delta keeps the log of a table.
        version: of the commit.
    """
    return folder / f"{version:020}.json"


def checksum_file(folder: Path, version: int) -> Path:
    """Return the checksum file that Delta may leave beside a commit, there or not.

    Args:
        folder: where Delta keeps the log of a table.
        version: of the commit.
    """
    return folder / f"{version:020}.crc"


def last_commit(folder: Path, known: int) -> int:
    """Return the version of the newest commit.

    Args:
        folder: where Delta keeps the log of a table.
        known: a version that is there; later ones follow on each other.
    """
    while commit_file(folder, known + 1).exists():
        known += 1
    return known


def commit_versions(folder: Path) -> Iterator[int]:
    """Yield the versions of the commits that are there, in no order.

    Args:
        folder: where Delta keeps the log of a table.
    """
    named = (_COMMIT.fullmatch(file.name) for file in folder.iterdir())
    return (int(one[1]) for one in named if one)


def configuration_of(folder: Path) -> Mapping[str, str] | None:
    """Return the properties of a table by its newest commits; None where they do not tell them.

    Args:
        folder: where Delta keeps the log of the table.
    """
    newest = max(commit_versions(folder), default=-1)
    for version in range(newest, max(-1, newest - COMMITS_LOOKED_AT), -1):
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
            metadata = _metadata_at(folder, version)
            if metadata is not None:
                return dict(metadata["configuration"])
    return None


def _metadata_at(folder: Path, version: int) -> Mapping[str, Any] | None:
    """Return what a commit, or the checksum file that Delta may leave beside it, says of how its
    table is made.
    """
    for action in actions_of(folder, version):
        if "metaData" in action:
            changed: Mapping[str, Any] = action["metaData"]
            return changed
    text = checksum_file(folder, version).read_text(encoding="utf-8")
    told: Mapping[str, Any] = json.loads(text)
    return told.get("metadata")


def identity_of(file: Path) -> Identity | None:
    """Return what tells a file from another one in its place; None if it is not there.

    Args:
        file: of a log.
    """
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def actions_of(folder: Path, version: int) -> Iterator[dict[str, Any]]:
    """Yield the actions of a commit, as Delta's protocol has them.

    An empty one that others have followed has none: so Delta has taken it.

    Args:
        folder: where Delta keeps the log of a table.
        version: of the commit.

    Raises:
        FileNotFoundError: it is not there (any more).
        TornCommit: it was not on the disk when the machine lost its power.
    """
    file = commit_file(folder, version)
    is_empty = True
    with file.open("rb") as lines:
        for line in lines:
            try:
                action = json.loads(line.decode())
            except ValueError as error:
                raise TornCommit(file=file) from error
            is_empty = False
            yield action
    if is_empty and not commit_file(folder, version + 1).exists():
        raise TornCommit(file=file)
