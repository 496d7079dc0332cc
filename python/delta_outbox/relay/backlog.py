"""Reads a backlog: how far into it something has been tried, and what of that still waits.

What lies behind is as it came. A relay that has all lanes can read it from the event log, commit by
commit, as it reads what is new, and need not ask for it each time among all that is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.lifecycle.claims import DELIVERIES
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_COMMITS: Final = 10_000  # whose events are counted; a second, if by their files


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """What waits.

    Args:
        tried: what waits of the commits up to `reached`, columns of `claims.DELIVERIES`.
        reached: version of the event log; nothing has happened to any event that came later.
    """

    tried: pa.Table
    reached: int


def find_backlog(
    outbox: Store, read_view: DataFrame, counts: pa.Table, *, to: int, limit: int
) -> Backlog | None:
    """Tell what has been tried of a backlog from what has not.

    Args:
        outbox: the store.
        read_view: all that is open.
        counts: what `OpenDeliveries.by_commit` says of it.
        to: version of the event log that the read view shows.
        limit: deliveries of `Backlog.tried`, at most.

    Returns:
        None if there would be more of them, if one of them is to be killed once it is due, or if
        the event log no longer tells how many events each commit has.
    """
    before = counts["arrival"][0].as_py() - 1
    if to - before > MOST_COMMITS:
        return None
    try:
        added = LogReader(outbox.spark).counts(outbox.tables.events, after=before, to=to)
    except ChangeFeedGone:
        return None
    reached = last_touched(counts, added, before=before)
    tried = counts.filter(pc.less_equal(counts["arrival"], reached))
    if not tried.num_rows:
        return Backlog(tried=DELIVERIES.empty_table(), reached=reached)
    count = pc.sum(tried["waiting"]).as_py()
    if count > limit:
        return None
    found = outbox.deliveries.waiting(read_view.where(f"arrival <= {reached}"))
    if found.num_rows < count:
        return None
    return Backlog(tried=found, reached=reached)


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
