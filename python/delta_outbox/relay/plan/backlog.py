"""Tells how far into a backlog something has been tried.

What lies behind is as it came, and is read from the event log, commit by commit, like what is new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.store.store import Store

MOST_COMMITS: Final = 10_000  # whose events are counted; a second, if by their files


def last_tried(outbox: Store, counts: pa.Table, *, to: int) -> int | None:
    """Return the last version of the event log of which something has been tried; nothing has
    happened to any event that came later. None if the log no longer tells how many events each
    commit has.

    Args:
        outbox: the store.
        counts: what `OpenDeliveries.by_commit` says of all that is open.
        to: version of the event log that this shows.
    """
    before = counts["arrival"][0].as_py() - 1
    if to - before > MOST_COMMITS:
        return None
    try:
        added = LogReader(outbox.spark).counts(outbox.tables.events, after=before, to=to)
    except ChangeFeedGone:
        return None
    return last_touched(counts, added, before=before)


def last_touched(counts: pa.Table, added: Mapping[int, int], *, before: int) -> int:
    """Return the last commit of which something has happened to an event, or `before`.

    Args:
        counts: what `OpenDeliveries.by_commit` says.
        added: how many events each commit has, of those that hold something open and between.
        before: the commit before the first of them.
    """
    untouched = dict(
        zip(counts["arrival"].to_pylist(), counts["untouched"].to_pylist(), strict=True)
    )
    touched = (version for version, count in added.items() if untouched.get(version, 0) != count)
    return max(touched, default=before)
