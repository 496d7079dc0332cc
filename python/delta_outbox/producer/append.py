"""Appends a batch of events, all or nothing: checks every rule, then which ids the log has."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import days_of
from delta_outbox.core.byte_bounds import parts_of
from delta_outbox.core.errors import RejectedRows
from delta_outbox.core.failpoints import reach
from delta_outbox.core.horizon import EPOCH, Range, day_ranges, days_condition, first_day
from delta_outbox.core.literals import text_literal
from delta_outbox.core.settings import AppendSettings
from delta_outbox.core.tables import Tables
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.log_writer import append_rows
from delta_outbox.producer.candidates import complete
from delta_outbox.producer.id_index import IdIndex
from delta_outbox.producer.log_match import LogMatch, against_log
from delta_outbox.producer.rejection import Rejection
from delta_outbox.producer.validation import CREATED_AT_AHEAD, validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.producer.rejection import Rows

logger = logging.getLogger(__name__)

_COMPARED: Final = 200_000  # rows that are compared with the log at once
_COMPARED_BYTES: Final = 64 * 1024**2


@dataclass(frozen=True, kw_only=True)
class AppendReport:
    """What came of a batch.

    Args:
        appended: rows that were appended.
        already_present: rows that the log, or the batch before them, held already.
        rejected: all that is wrong; if there is any, nothing was appended.
    """

    appended: int = 0
    already_present: int = 0
    rejected: tuple[Rejection, ...] = field(default=())

    def raise_if_rejected(self) -> None:
        """Turn rejections into an error.

        Raises:
            RejectedRows: there are some.
        """
        if self.rejected:
            raise RejectedRows(self.rejected)


def append_events(
    spark: SparkSession,
    tables: Tables,
    events: pa.Table,
    *,
    id_index: IdIndex,
    settings: AppendSettings,
    now: datetime,
    lines: Sequence[int] | Rows | None = None,
    order: str,
) -> AppendReport:
    """Append a batch of events, all or nothing; what is reported is on the disk.

    Two appends of one id at the same moment cannot see each other; the first row in arrival
    order is the event, and the view duplicate_events shows the other.

    Args:
        spark: the session to write with.
        tables: the names of the relations.
        events: columns of outbox_events that a producer gives.
        id_index: of the log; told what is appended.
        settings: limits, patterns and the identity horizon.
        now: the current instant.
        lines: what to call each row in a rejection.
        order: the macro `order_of_contents` of rows named `c`: the first row of an id counts.

    Raises:
        DiskFull: there is no room; nothing was appended.
        NotWritable: the right to write is missing; nothing was appended.
        NotSynced: the disk did not take it; it may be there or not.
    """
    checked = validate(events, settings=settings, now=now, lines=lines)
    if checked.rejections:
        return AppendReport(rejected=checked.rejections)
    rows = checked.given
    if not rows.num_rows:
        return AppendReport(already_present=checked.repeated)
    back = settings.horizon_days
    today = (now.date() - EPOCH).days
    given = _days_given(rows, back=back)
    horizon = [*given, (today - back, today + CREATED_AT_AHEAD.days)]
    since = first_day(horizon)
    # Ids are known from one day on: of days that lie far apart the log itself is asked.
    if len(given) > 1 or id_index.may_hold(rows["event_id"], since=since):
        match = _match(spark, tables, rows, checked.lines, horizon, order)
    else:
        match = against_log(rows, rows.slice(0, 0), checked.lines.tolist())
    if match.rejections:
        return AppendReport(rejected=tuple(sorted(match.rejections)))
    new = complete(rows.filter(pc.invert(pa.array(match.already_present))), now=now)
    if new.num_rows:
        tag = f"outbox/append/{uuid.uuid4().hex}"
        reach("events.before")
        try:
            append_rows(spark, tables.events, new, tag=tag)
        except BaseException:
            id_index.forget()
            raise
        id_index.appended(new["event_id"], tag=tag)
    sync_outbox(spark, tables.schema)  # also what was there already: whoever put it may not have
    if new.num_rows:
        reach("events.after")
    present = rows.num_rows - new.num_rows + checked.repeated
    logger.info("appended", extra={"appended": new.num_rows, "already_present": present})
    return AppendReport(appended=new.num_rows, already_present=present)


def _match(
    spark: SparkSession,
    tables: Tables,
    rows: pa.Table,
    lines: Rows,
    horizon: Sequence[Range],
    order: str,
) -> LogMatch:
    """Compare rows with what the log has of their ids, so many bytes at a time."""
    sizes = pc.binary_length(rows["payload"]).to_numpy().astype(np.int64)
    found = [
        against_log(part, _known(spark, tables, part, horizon, order), lines[first:end].tolist())
        for first, end in parts_of(sizes, most=_COMPARED_BYTES, rows=_COMPARED)
        for part in [rows.slice(first, end - first)]
    ]
    return LogMatch(
        already_present=np.concatenate([one.already_present for one in found]),
        rejections=tuple(one for match in found for one in match.rejections),
    )


def _days_given(rows: pa.Table, *, back: int) -> Sequence[Range]:
    """Return the days, by created_at, on which the ids of rows may be known; none if none is
    given.
    """
    if "created_at" not in rows.column_names:
        return []
    days = days_of(rows["created_at"]).cast(pa.int32()).unique().drop_null()
    return day_ranges(days.to_pylist(), back=back)


def _known(
    spark: SparkSession, tables: Tables, rows: pa.Table, horizon: Sequence[Range], order: str
) -> pa.Table:
    """Return the first copies that the log has of these ids, within the horizon."""
    ids = rows.select(["event_id"])
    spark.createDataFrame(ids).createOrReplaceTempView("outbox_new_ids")
    bounds = pc.min_max(ids["event_id"]).as_py()
    days = days_condition(horizon)
    # Nothing but ids is read, and where they grow with time only the last files.
    copies = (
        f"from {tables.events} where event_id in (select event_id from outbox_new_ids) "
        f"and event_id between {text_literal(bounds['min'])} and {text_literal(bounds['max'])}"
    )
    found = spark.sql(f"select distinct string(created_date) as day {copies} and ({days})")
    held = [f"date'{row['day']}'" for row in found.collect()]
    if not held:
        return rows.slice(0, 0)
    given = [name for name in rows.column_names if name != "event_id"]
    columns = ", ".join(["event_id", *given])
    copy = f"row_number() over (partition by event_id order by arrival, {order}) as copy"
    return spark.sql(
        f"select {columns} from ("
        f" select *, {copy} from ("
        f"  select *, _metadata.row_commit_version as arrival {copies}"
        f"  and created_date in ({', '.join(held)})) as c)"
        " where copy = 1"
    ).toArrow()
