"""What has come since the last look, where nothing that is open could hold it up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.claims import COLUMNS, DELIVERIES, in_order
from delta_outbox.conflicts import is_feed_gone
from delta_outbox.instants import micros
from delta_outbox.known_ids import KnownIds
from delta_outbox.outbox import Outbox
from delta_outbox.tails import changes


class Arrivals:
    """New events of one outbox, as one relay sees them.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Outbox) -> None:
        """Read nothing yet."""
        self._outbox = outbox
        self._known_ids = KnownIds(outbox.spark, outbox.tables.events)

    def takeable(self, *, after: int, to: int, limit: int) -> pa.Table | None:
        """Return what came between two versions of the event log, if all of it is takeable and new.

        It is where nothing that is open could hold it up: the caller knows that, and that no policy
        holds or ends what waits.

        Args:
            after: version of the event log, not included.
            to: version of the event log, included; later than the other.
            limit: deliveries.

        Returns:
            Columns of `claims.DELIVERIES`, in order; None if that has to be asked of everything.
        """
        outbox = self._outbox
        source = changes(outbox.tables.events, after=after, to=to)
        text = outbox.statements.fill("arrivals", source=source)
        try:
            found = outbox.spark.sql(f"select {COLUMNS} from ({text}) limit {limit + 1}").toArrow()
        except Exception as error:
            if is_feed_gone(error):
                return None
            raise
        table = found.cast(DELIVERIES)
        if not 0 < table.num_rows <= limit:
            return None
        now = outbox.clock.now()
        due = pc.less_equal(table["available_at"], now)
        first = pc.min(table["created_at"].cast(pa.int64())).as_py()
        if first < 0 or not pc.all(pc.fill_null(due, True)).as_py():
            return None
        earliest = datetime.fromtimestamp(min(first, micros(now)) // 1_000_000, UTC).date()
        since = earliest - timedelta(days=int(outbox.statements.texts["identity_horizon_days"]))
        event_ids = table["event_id"].to_pylist()
        if len(set(event_ids)) < len(event_ids) or self._known_ids.may_hold(
            event_ids, since=since, version=after
        ):
            return None
        self._known_ids.add(event_ids, version=to)
        return in_order(table)
