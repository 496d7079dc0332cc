"""Reads the events that came since the last poll, where nothing open can block them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import days_of
from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.core.horizon import day_ranges, first_day
from delta_outbox.delta.files.event_files import LOCATED, OF_EVENTS, first_states, may_be_rebased
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.producer.id_index import IdIndex
from delta_outbox.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """New events.

    Args:
        deliveries: columns of `event_files.LOCATED`, in no order.
        to: up to which version of the event log.
    """

    deliveries: pa.Table
    to: int


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

    def read(self, *, after: int, to: int, limit: int) -> Arrived | None:
        """Return what came between two versions of the event log, if each of it is a new event.

        Args:
            after: version of the event log, not included.
            to: version of the event log, included; later than the other.
            limit: deliveries; what has more is read in parts, commit by commit.

        Returns:
            None if that has to be asked of everything.
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
            return Arrived(deliveries=LOCATED.empty_table(), to=added.to)
        table = first_states(added.rows)
        found = Arrived(deliveries=table, to=added.to)
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

    def with_locations(self, deliveries: pa.Table) -> pa.Table:
        """Return deliveries with where their events lie, as far as the files of their commits tell:
        then their workers can read them, and nothing of them passes Spark.

        Args:
            deliveries: columns of `claims.DELIVERIES`, in any order, which is kept.
        """
        return self._reader.located(self._events, deliveries)
