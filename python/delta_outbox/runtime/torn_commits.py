"""Finds commits that a power cut has torn and tables without a first one, before Spark is started.

Delta puts a commit in place by a rename and syncs nothing, so a power cut may leave the last ones
of a log empty, cut, or naming data files that are. Delta takes an empty one for a commit that did
nothing, and fails on the others in words that help nobody.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from delta_outbox.core.disk import checksum_of
from delta_outbox.core.errors import TornCommit
from delta_outbox.core.tables import LOGS
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.log_folder import (
    LAST_CHECKPOINT,
    actions_of,
    commit_file,
    commit_versions,
    last_checkpoint,
)

_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
WRITTEN_OUT: Final = 600.0  # seconds after which the system has written out what it was given
_PARQUET: Final = b"PAR1"  # how such a file ends
_CHECKSUMS: Final = b"crc\0"  # how Hadoop's begin, then bytes of each chunk; four are of a chunk
_CHUNK: Final = 512  # bytes


def remove_unmade(home: Home) -> None:
    """Remove what is there of tables whose making was interrupted before their first commit.

    Delta refuses to make a table where a folder is. Removed is a folder that holds the log of a
    table, without a commit or a checkpoint, and nothing else.

    Args:
        home: nobody else works in it.
    """
    for log in _logs(home):
        written = (file for file in log.rglob("*") if file.is_file())
        if [log] == list(log.parent.iterdir()) and all(_is_unfinished(file) for file in written):
            shutil.rmtree(log.parent)


def _is_unfinished(file: Path) -> bool:
    """Say whether a file of a log had not been put in its place yet, or has checksums of such."""
    return file.name.startswith(".") and file.name.endswith((".tmp", ".tmp.crc"))


def _logs(home: Home) -> Sequence[Path]:
    """Return the logs that Delta keeps of the tables of the outboxes of a home."""
    outboxes = sorted(events.parent for events in home.warehouse.glob(f"*/{LOGS[0]}"))
    return [log for outbox in outboxes for log in sorted(outbox.glob("*/_delta_log"))]


def check_commits(home: Home) -> None:
    """Refuse the outboxes of a home if the last commits of a table of theirs are torn.

    Args:
        home: nobody need work in it.

    Raises:
        TornCommit: one is, or a checkpoint; the remedy names each file.
    """
    for log in _logs(home):
        checkpoint = torn_checkpoint(log)
        if checkpoint is not None:
            raise TornCommit(file=checkpoint, remedy=_remedy(home, log, checkpoint))
        torn = torn_commits(log)
        if torn:
            files = [commit_file(log, version) for version in range(torn[0], torn[-1] + 1)]
            raise TornCommit(file=files[0], remedy=_remedy(home, log, *files))


def torn_checkpoint(log: Path) -> Path | None:
    """Return the newest checkpoint if it is torn; the commits say all that it says.

    Args:
        log: the folder where Delta keeps the log of a table.
    """
    newest = max(filter(_CHECKPOINT.fullmatch, (file.name for file in log.iterdir())), default=None)
    return None if newest is None or _is_whole(log / newest) else log / newest


def torn_commits(log: Path) -> Sequence[int]:
    """Return the first and the last version of what is to be moved away; nothing if all is well.

    What was acknowledged is synced, with all that came before it: behind a commit that is torn,
    nothing was. But an empty one that others have followed was taken, by Delta and by us, for one
    that did nothing. What is older than the last checkpoint, and was written minutes before the
    newest commit, was on the disk when the power was lost.

    Args:
        log: the folder where Delta keeps the log of a table.
    """
    versions = _doubtful(log)
    read = {version: _actions(log, version) for version in versions}
    replaced = {
        action["remove"]["path"]
        for actions in read.values()
        for action in actions or ()
        if "remove" in action
    }
    first = next((at for at in versions if _is_torn(log, read[at], replaced)), None)
    if first is None:
        return ()
    while read.get(first - 1) == []:
        first -= 1
    return first, versions[-1]


def _doubtful(log: Path) -> Sequence[int]:
    """Return the commits of which something may not have been on the disk, in order.

    A checkpoint that was made in the last seconds says what commits did, not that their files are
    whole.
    """
    versions = sorted(commit_versions(log), reverse=True)
    if not versions:
        return ()
    since = last_checkpoint(log)
    recent = _written_at(log, versions[0]) - WRITTEN_OUT
    kept = takewhile(lambda one: one >= since or _written_at(log, one) >= recent, versions)
    return [*kept][::-1]


def _written_at(log: Path, version: int) -> float:
    try:
        return commit_file(log, version).stat().st_mtime
    except FileNotFoundError:  # Delta has just removed what is old
        return 0.0


def _actions(log: Path, version: int) -> Sequence[dict[str, Any]] | None:
    """Return the actions of a commit; None if it is not whole."""
    file = commit_file(log, version)
    try:
        actions = list(actions_of(log, version))
        return actions if not actions or _has_checksums(file, file.stat().st_size) else None
    except FileNotFoundError:  # Delta has just removed what is old
        return [{}]
    except TornCommit:
        return None


def _is_torn(log: Path, actions: Sequence[dict[str, Any]] | None, replaced: set[str]) -> bool:
    if actions is None:
        return True
    added = (action["add"] for action in actions if "add" in action)
    return any(
        add["path"] not in replaced
        and ":" not in add["path"]
        and not _is_whole(log.parent / unquote(add["path"]), size=add["size"])
        for add in added
    )


def _is_whole(file: Path, *, size: int | None = None) -> bool:
    """Say whether a Parquet file ends as such, has a length that is known, and good checksums."""
    try:
        with file.open("rb") as content:
            found = content.seek(0, os.SEEK_END)
            if found < len(_PARQUET) or size not in (None, found):
                return False
            content.seek(-len(_PARQUET), os.SEEK_END)
            return content.read() == _PARQUET and _has_checksums(file, found)
    except FileNotFoundError:
        return False


def _has_checksums(file: Path, size: int) -> bool:
    """Say whether the checksums of a file, if Hadoop has written any, are as many as there must be.

    Of those that are less it says what nobody understands, or nothing.
    """
    try:
        found = checksum_of(file).read_bytes()
    except FileNotFoundError:
        return True
    whole = len(_CHECKSUMS) + 4 * (1 + -(-size // _CHUNK))
    return found.startswith(_CHECKSUMS) and len(found) == whole and any(found[-4:])


def _remedy(home: Home, log: Path, *files: Path) -> str:
    away = shlex.quote(str(home.root / "torn" / log.parent.name))
    # With what Delta and Hadoop have left beside each: they would not write that again.
    names = [LAST_CHECKPOINT, *(file.name.removesuffix("json") for file in files)]
    told = " -o ".join(f"-name '*{name}*'" for name in names)
    moved = (
        f"mkdir -p {away} && find {shlex.quote(str(log))} \\( {told} \\) -exec mv {{}} {away} \\;"
    )
    if commit_file(log, 0) in files:
        return (
            f"End whatever uses this home. Then `{moved}`, and `outbox init`, which makes the "
            "table again: the power was lost while it was made."
        )
    return (
        f"End whatever uses this home. Then `{moved}`, and `outbox refresh --rebuild`. Nothing of "
        "it was acknowledged by `outbox`; what somebody's INSERT put there seconds before the "
        "power was lost has to be inserted again."
    )
