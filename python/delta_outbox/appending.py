"""Append a batch of events, all or nothing: every rule first, then the look into the log."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.candidate import complete
from delta_outbox.content import against_log
from delta_outbox.errors import RejectedRows
from delta_outbox.failpoints import reach
from delta_outbox.few_rows import interpreted
from delta_outbox.known_ids import KnownIds
from delta_outbox.literals import text_literal
from delta_outbox.rejection import Rejection
from delta_outbox.settings import AppendSettings
from delta_outbox.storage import writing_to
from delta_outbox.tables import Tables
from delta_outbox.validation import CREATED_AT_AHEAD, validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.rejection import Rows

logger = logging.getLogger(__name__)

_ROWS_PER_FILE: Final = 200_000


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
    known_ids: KnownIds,
    settings: AppendSettings,
    now: datetime,
    lines: Sequence[int] | Rows | None = None,
) -> AppendReport:
    """Append a batch of events, all or nothing.

    Two appends of one id at the same moment cannot see each other; the first row in arrival
    order is the event, and the view duplicate_events shows the other.

    Args:
        spark: the session to write with.
        tables: the names of the relations.
        events: columns of outbox_events that a producer gives.
        known_ids: of the log; told what is appended.
        settings: limits, patterns and the identity horizon.
        now: the current instant.
        lines: what to call each row in a rejection.

    Raises:
        DiskFull: there is no room; nothing was appended.
        NotWritable: the right to write is missing; nothing was appended.
    """
    checked = validate(events, settings=settings, now=now, lines=lines)
    if checked.rejections:
        return AppendReport(rejected=checked.rejections)
    rows = checked.given
    if not rows.num_rows:
        return AppendReport(already_present=checked.repeated)
    horizon = _horizon(rows, settings=settings, now=now)
    since = min(first for first, _ in horizon)
    ids = rows["event_id"]
    known = (
        _known(spark, tables, rows, horizon)
        if known_ids.may_hold(ids, since=since)
        else rows.slice(0, 0)
    )
    match = against_log(rows, known, checked.lines.tolist())
    if match.rejections:
        return AppendReport(rejected=tuple(sorted(match.rejections)))
    new = complete(rows.filter(pc.invert(pa.array(match.already_present))), now=now)
    if new.num_rows:
        mark = f"outbox/append/{uuid.uuid4().hex}"
        reach("events.before")
        try:
            with writing_to(tables.events), interpreted(spark, new.num_rows):
                (
                    spark.createDataFrame(new)
                    .coalesce(max(1, new.num_rows // _ROWS_PER_FILE))
                    .write.format("delta")
                    .mode("append")
                    .option("userMetadata", mark)
                    .saveAsTable(tables.events)
                )
        except BaseException:
            known_ids.forget()
            raise
        known_ids.appended(new["event_id"], mark=mark)
        reach("events.after")
    present = rows.num_rows - new.num_rows + checked.repeated
    logger.info("appended", extra={"appended": new.num_rows, "already_present": present})
    return AppendReport(appended=new.num_rows, already_present=present)


def _horizon(rows: pa.Table, *, settings: AppendSettings, now: datetime) -> list[tuple[date, date]]:
    """Return the days, from the first to the last, in which the ids of rows may be known."""
    back = timedelta(days=settings.horizon_days)
    today = now.date()
    days = [(today - back, today + CREATED_AT_AHEAD)]
    if "created_at" in rows.column_names and rows["created_at"].null_count < rows.num_rows:
        bounds = pc.min_max(rows["created_at"]).as_py()
        days.append((bounds["min"].date() - back, bounds["max"].date()))
    return days


def _known(
    spark: SparkSession, tables: Tables, rows: pa.Table, horizon: Sequence[tuple[date, date]]
) -> pa.Table:
    """Return the first copies that the log has of these ids, within the horizon."""
    ids = rows.select(["event_id"])
    spark.createDataFrame(ids).createOrReplaceTempView("outbox_new_ids")
    bounds = pc.min_max(ids["event_id"]).as_py()
    days = " or ".join(
        f"created_date between date'{first}' and date'{last}'" for first, last in horizon
    )
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
    position = "arrival, ordinal asc nulls last, created_at, event_type"
    return spark.sql(
        f"select {columns} from ("
        f" select *, row_number() over (partition by event_id order by {position}) as copy from ("
        f"  select *, _metadata.row_commit_version as arrival {copies}"
        f"  and created_date in ({', '.join(held)})))"
        " where copy = 1"
    ).toArrow()
