"""Reads the commits of a log from its files: what each has done, as Delta's protocol has it.

A commit is read once and remembered, whoever asks: its writer, who syncs it, who looks for what is
new, and who appends after it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from delta_outbox.delta.added_files import AddedFile
from delta_outbox.runtime.log_folder import Identity, actions_of, commit_file, identity_of

REMEMBERED: Final = 1000  # commits, of all logs
ROW_TRACKING: Final = "delta.rowTracking"
NO_ROW_ID: Final = -1  # the ids of rows begin with 0

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit of a table.

    Args:
        version: its number.
        operation: what was done, in Delta's words.
        tag: the commit tag, what its writer says of it (`userMetadata`), if anything.
        at: milliseconds since 1970, as Delta or the writer tell; a table that was dropped and made
            anew has its numbers again, not its times.
    """

    version: int
    operation: str
    tag: str | None
    at: int


@dataclass(frozen=True, kw_only=True)
class Actions:
    """What a commit has done.

    Args:
        commit: what it says of itself.
        added: the files with new rows, in order; None where it does more than append, or has files
            that cannot be read as they are.
        written: all files that it has put into the folder of the table; None where it does not
            tell.
        numbers: the number of each numbered writer that it is of.
        last_row_id: the last id that it gave to a row; `NO_ROW_ID` if none.
        metadata: of the table from then on; None if that stays.
        protocol: likewise.
    """

    commit: Commit
    added: Sequence[AddedFile] | None
    written: Sequence[Path] | None
    numbers: Mapping[str, int]
    last_row_id: int
    metadata: Mapping[str, Any] | None
    protocol: Mapping[str, Any] | None


def read_commit(folder: Path, version: int) -> Actions | None:
    """Return what a commit has done; None if it is not there (any more).

    Args:
        folder: where Delta keeps the log of a table.
        version: of the commit.

    Raises:
        TornCommit: it was not on the disk when the machine lost its power.
    """
    identity = identity_of(commit_file(folder, version))
    try:
        return None if identity is None else _read(folder, version, identity)
    except FileNotFoundError:  # Delta has just removed what is old
        return None


def added_files(
    folder: Path, *, after: int, to: int, most: int | None = None
) -> tuple[Sequence[AddedFile], int] | None:
    """Return the files that were added between two versions, and the last version that was read.

    What only rewrites rows (OPTIMIZE) adds none, and a file without rows counts as none.

    Args:
        folder: where Delta keeps the log of a table.
        after: version, not included.
        to: version, included.
        most: rows, any number if None; reading ends before the commit that would exceed them.
            The first commit is read whatever it holds.

    Returns:
        None where the files do not tell: a commit is gone, does more than append, or has files
        that cannot be read as they are.
    """
    found: list[AddedFile] = []
    rows = 0
    for version in range(after + 1, to + 1):
        actions = read_commit(folder, version)
        if actions is None or actions.added is None:
            return None
        rows += sum(file.rows for file in actions.added)
        if found and most is not None and rows > most:
            return found, version - 1
        found += actions.added
    return found, to


def row_id_of(domain: Mapping[str, Any]) -> int:
    """Return the last row id that a domain of metadata tells, `NO_ROW_ID` if it is another one.

    Args:
        domain: as Delta's protocol has it.
    """
    if domain["domain"] != ROW_TRACKING:
        return NO_ROW_ID
    return int(json.loads(domain["configuration"])["rowIdHighWaterMark"])


@functools.lru_cache(maxsize=REMEMBERED)
def _read(folder: Path, version: int, identity: Identity) -> Actions:
    """Read a commit; what tells its file from another one in its place is there to be compared."""
    del identity
    info: Mapping[str, Any] = {}
    added: list[AddedFile | None] = []
    written: list[Path | None] = []
    numbers: dict[str, int] = {}
    row_ids = [NO_ROW_ID]
    changes: dict[str, Mapping[str, Any]] = {}
    actions = actions_of(folder, version)
    for kind, told in (one for action in actions for one in action.items()):
        if kind == "commitInfo":
            info = info or told
        elif kind == "txn":
            numbers[told["appId"]] = int(told["version"])
        elif kind == "domainMetadata":
            row_ids.append(row_id_of(told))
        elif kind in ("metaData", "protocol"):
            changes[kind] = told
        elif kind in ("add", "cdc"):
            written.append(_path(folder, told))
            if kind == "cdc":
                added.append(None)
            elif told.get("dataChange", True):
                added.append(added_file(folder, version, told))
        elif kind == "remove" and told.get("dataChange", True):
            added.append(None)
    return Actions(
        commit=Commit(
            version=version,
            operation=str(info.get("operation")),
            tag=info.get("userMetadata"),
            at=int(info.get("inCommitTimestamp", info.get("timestamp", 0))),
        ),
        added=_all_or_none([file for file in added if file is None or file.rows]),
        written=_all_or_none(written),
        numbers=numbers,
        last_row_id=max(row_ids),
        metadata=changes.get("metaData"),
        protocol=changes.get("protocol"),
    )


def _path(folder: Path, told: Mapping[str, Any]) -> Path | None:
    """Return where a file lies; None if not in the folder of the table, or not by itself."""
    path = told["path"]
    if told.get("deletionVector") or ":" in path or path.startswith("/"):
        return None
    return folder.parent / unquote(path)


def added_file(folder: Path, version: int, told: Mapping[str, Any]) -> AddedFile | None:
    """Return a data file; None if its rows are not all that it holds, or nobody says how many.

    Args:
        folder: where Delta keeps the log of its table.
        version: of the commit.
        told: the `add` of Delta's protocol.
    """
    path = _path(folder, told)
    rows = json.loads(told.get("stats") or "{}").get("numRecords")
    if path is None or rows is None:
        return None
    partition = told.get("partitionValues", {})
    return AddedFile(path=path, version=version, rows=int(rows), partition=partition)


def _all_or_none(found: Sequence[T | None]) -> Sequence[T] | None:
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None
