"""Reads new events from the event log, commit by commit: those that came since the last poll, where
nothing open can block them, and those of a backlog of which nothing has been tried yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import days_of
from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.core.horizon import day_ranges, first_day
from delta_outbox.delta.files.event_files import LOCATED, OF_EVENTS, first_states, may_be_rebased
from delta_outbox.delta.log_reader import Added, LogReader
from delta_outbox.producer.id_index import IdIndex
from delta_outbox.store.store import Store

MOST_COMMITS: Final = 10_000  # whose events are counted; a second, if by their files


class Arrivals:
    """New events of one outbox, as one relay sees them.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Store) -> None:
        self._outbox = outbox
        self._events = outbox.tables.events
        self._reader = LogReader(outbox.spark)
        self._id_index = IdIndex(outbox.spark, outbox.tables.events)

    def read(self, *, after: int, to: int, limit: int) -> Added | None:
        """Return what came between two versions of the event log, if each of it is a new event.

        Args:
            after: version of the event log, not included.
            to: version of the event log, included; later than the other.
            limit: deliveries; what has more is read in parts, commit by commit.

        Returns:
            Columns of `event_files.LOCATED`; None if that has to be asked of everything.
        """
        try:
            added = self._reader.added(
                self._events, after=after, to=to, columns=OF_EVENTS, most=limit
            )
        except ChangeFeedGone:
            return None
        if added is None:
            return None
        if not added.rows.num_rows:
            return Added(rows=LOCATED.empty_table(), to=added.to)
        table = first_states(added.rows)
        found = Added(rows=table, to=added.to)
        if may_be_rebased(table["created_at"]):
            return None
        horizon = int(self._outbox.statements.texts["identity_horizon_days"])
        if pc.count_distinct(table["event_id"]).as_py() < table.num_rows:
            return None
        days = days_of(table["created_at"]).cast(pa.int32()).unique().to_pylist()
        today = self._outbox.clock.now().date()
        ranges = day_ranges(days, back=horizon)
        if len(ranges) > 1:  # ids are known from one day on, and these lie far apart
            return None if self._id_index.are_there(table["event_id"], ranges, after) else found
        since = min(first_day(ranges), today - timedelta(days=horizon))
        if self._id_index.may_hold(table["event_id"], since=since, version=after):
            return None
        if self._id_index.is_read:
            self._id_index.add_asked(version=found.to)
        return found


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
