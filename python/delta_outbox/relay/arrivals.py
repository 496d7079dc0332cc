"""Reads the events that came since the last poll, where nothing open can block them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import days_of
from delta_outbox.core.horizon import day_ranges
from delta_outbox.delta.delta_errors import is_feed_gone
from delta_outbox.delta.files.added_files import AddedFile
from delta_outbox.delta.files.commit_files import CommitFiles
from delta_outbox.delta.files.event_files import (
    FILE,
    UnreadableFile,
    arrived,
    may_be_rebased,
    with_locations,
)
from delta_outbox.lifecycle.claims import COLUMNS, DELIVERIES
from delta_outbox.producer.id_index import IdIndex
from delta_outbox.projection.tails import changes
from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

_EPOCH: Final = date(1970, 1, 1)
MOST_COMMITS: Final = 100  # whose files are looked into for what a read view shows
MOST: Final = 1_000_000  # rows of one commit that are held at once; of a larger one Spark is asked


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """New events.

    Args:
        deliveries: columns of `claims.DELIVERIES`, and of `event_files.LOCATED` where the files are
            known; in no order.
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
        self._files = CommitFiles(outbox.spark)
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
        found = self._from_files(after, to, limit) or self._from_feed(after, to, limit)
        if found is None or not found.deliveries.num_rows:
            return found
        table = found.deliveries
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
        since = min(_EPOCH + timedelta(days=ranges[0][0]), today - timedelta(days=horizon))
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
        if FILE in deliveries.column_names:
            return deliveries
        versions = deliveries["arrival"].unique().to_pylist()
        if len(versions) > MOST_COMMITS:
            return deliveries
        files: dict[int, Sequence[AddedFile]] = {}
        rows = 0
        for version in versions:
            added = self._files.added(self._events, after=version - 1, to=version)
            if added is None:
                return deliveries
            files[version] = added.files
            rows += added.rows
        if rows > MOST:
            return deliveries
        try:
            return with_locations(deliveries, files)
        except UnreadableFile:  # written anew since, or purged
            return deliveries

    def _from_files(self, after: int, to: int, limit: int) -> Arrived | None:
        added = self._files.added(self._events, after=after, to=to, most=limit)
        if added is None or added.rows > max(limit, MOST):
            return None
        try:
            return Arrived(deliveries=arrived(added.files), to=added.to)
        except UnreadableFile as error:
            logger.warning("arrivals_unreadable", extra={"file": str(error)})
            return None

    def _from_feed(self, after: int, to: int, limit: int) -> Arrived | None:
        outbox = self._outbox
        text = outbox.statements.fill("arrivals", source=changes(self._events, after=after, to=to))
        try:
            found = outbox.spark.sql(f"select {COLUMNS} from ({text}) limit {limit + 1}").toArrow()
        except Exception as error:
            if is_feed_gone(error):
                return None
            raise
        table = found.cast(DELIVERIES)
        return Arrived(deliveries=table, to=to) if table.num_rows <= limit else None
