"""Tells how far into a backlog something has been tried.

What lies behind is as it came, and is read from the event log, commit by commit, like what is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from delta_outbox.delta.files.added_files import AddedFile
from delta_outbox.delta.files.commit_files import CommitFiles
from delta_outbox.store.store import Store

MOST_COMMITS: Final = 10_000  # whose files are counted; a second, where they lie here


def last_tried(outbox: Store, counts: pa.Table, *, to: int) -> int | None:
    """Return the last version of the event log of which something has been tried; nothing has
    happened to any event that came later. None if the files of the log do not tell.

    Args:
        outbox: the store.
        counts: what `OpenDeliveries.by_commit` says of all that is open.
        to: version of the event log that this shows.
    """
    before = counts["arrival"][0].as_py() - 1
    if to - before > MOST_COMMITS:
        return None
    added = CommitFiles(outbox.spark).added(outbox.tables.events, after=before, to=to)
    return None if added is None else last_touched(counts, added.files, before=before)


def last_touched(counts: pa.Table, files: Sequence[AddedFile], *, before: int) -> int:
    """Return the last commit of which something has happened to an event, or `before`.

    Args:
        counts: what `OpenDeliveries.by_commit` says.
        files: of the event log, those of all commits that hold something open and between.
        before: the commit before the first of them.
    """
    untouched = dict(
        zip(counts["arrival"].to_pylist(), counts["untouched"].to_pylist(), strict=True)
    )
    rows: Counter[int] = Counter()
    for file in files:
        rows[file.version] += file.rows
    touched = (version for version, count in rows.items() if untouched.get(version, 0) != count)
    return max(touched, default=before)
