"""Numbered writes: what derived writers write down, each number once, before they act on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import LogRewound, SequenceTaken
from delta_outbox.core.failpoints import reach
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import Commit
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.delta.log_writer import ATTEMPTS, LogWriter
from delta_outbox.delta.table_files import few_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS_LOOKED_AT: Final = 100  # of all writers, before the last plan is read instead
MANY: Final = 1000  # plans of a writer, from which on the last ones are looked for by their numbers
ROW: Final = pa.schema(
    [
        ("writer", pa.string()),
        ("number", pa.int64()),
        ("plan", pa.string()),
        ("planned_at", pa.timestamp("us", tz="UTC")),
        ("planned_by", pa.string()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class NumberedWrite:
    """A plan and its place.

    Args:
        number: from 1, growing within a writer.
        plan: what was planned.
        planned_at: when.
    """

    number: int
    plan: Mapping[str, Any]
    planned_at: datetime


class NumberedWrites:
    """The plans of one writer in outbox_progress.

    A number is taken once: Delta commits one append per (appId, version). A version that was
    used before is skipped without a word, so a plan is believed when it has been read back.

    Args:
        spark: the session to write with.
        tables: the names of the relations.
        writer: whose plans; letters, digits, - and _.
        clock: the time.
        app_id: the writer id under which Delta keeps one version per append; `outbox/<writer>` if
            left out.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        *,
        writer: str,
        clock: Clock,
        app_id: str | None = None,
    ) -> None:
        self.app_id = app_id or f"outbox/{writer}"
        self._spark = spark
        self._table = tables.progress
        self._writer = writer
        self._log_writer = LogWriter(spark, app_id=self.app_id, committed="plan.committed")
        self._clock = clock
        self._seen: Commit | None = None  # of all writers, the last one that was looked at

    def have_news(self) -> bool:
        """Say whether somebody may have written a number since this was asked the last time: true
        the first time. Looks at the commits that have come, by their tags.
        """
        history, seen = CommitHistory(self._spark), self._seen
        self._seen = newest = history.newest(self._table)
        if newest == seen:
            return False
        commits = history.after(self._table, seen, most=COMMITS_LOOKED_AT) if seen else None
        if commits:
            self._seen = commits[-1]
        ours = f"{self.app_id}/"
        return commits is None or any((one.tag or "").startswith(ours) for one in commits)

    def last(self, count: int = 1) -> Iterator[NumberedWrite]:
        """Yield the last plans, the newest first. Where there are many, and the log tells the last
        number, those before are not read.

        Args:
            count: how many at most.
        """
        newest = f"order by number desc limit {int(count)}"
        number = LogReader(self._spark).last_number(self._table, self.app_id) or 0
        rows = self._rows(f"number > {number - count} {newest}") if number > MANY else None
        if rows is None or rows.num_rows < count:  # some numbers are of appends that left no plan
            rows = self._rows(f"true {newest}")
        yield from _plans(rows)

    def numbered(self, number: int) -> NumberedWrite | None:
        """Return a plan, None if there is none of this number.

        Args:
            number: from 1.
        """
        rows = self._rows_here(number)
        return next(self.among([number]) if rows is None else _plans(rows), None)

    def among(self, numbers: Iterable[int]) -> Iterator[NumberedWrite]:
        """Yield those plans that are there.

        Args:
            numbers: from 1, at least one.
        """
        yield from _plans(self._rows(f"number in ({', '.join(map(str, numbers))})"))

    def planned_at(self, instants: Iterable[datetime]) -> Iterator[NumberedWrite]:
        """Yield the plans that were made at some instants.

        Args:
            instants: at least one.
        """
        yield from _plans(
            self._rows(f"planned_at in ({', '.join(map(instant_literal, instants))})")
        )

    def _rows_here(self, number: int) -> pa.Table | None:
        """Return the row of a plan by the files of the log; None where they do not tell."""
        newest = CommitHistory(self._spark).newest_here(self._table)
        if newest is None:
            return None
        rows = few_rows(
            self._spark,
            self._table,
            version=newest.version,
            column="writer",
            values=(self._writer,),
            most=MANY,
            number=("number", number),
        )
        return None if rows is None else rows.filter(pc.equal(rows["number"], number))

    def _rows(self, condition: str) -> pa.Table:
        return self._spark.sql(
            f"select number, plan, planned_at from {self._table} "
            f"where writer = '{self._writer}' and {condition}"
        ).toArrow()

    def append(
        self,
        decide: Callable[[NumberedWrite | None], Mapping[str, Any] | None],
        *,
        planned_by: str,
    ) -> NumberedWrite | None:
        """Append the plan that follows the last one, if one is to follow.

        Args:
            decide: is given the last plan, or None, and returns the next, or None for no more;
                asked again whenever another writer was faster.
            planned_by: who plans, for the record.

        Returns:
            The plan that was appended, or the last one; None if there is none.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
            LogRewound: the number counts as used and nobody's plan carries it.
        """
        number = 0
        for _ in range(ATTEMPTS):
            last = next(self.last(), None)
            plan = decide(last)
            if plan is None:
                return last
            new = self.append_after(last, plan, planned_by=planned_by)
            if new is not None:
                return new
            number = last.number + 1 if last else 1
        raise SequenceTaken(writer=self.app_id, number=number)

    def append_after(
        self,
        last: NumberedWrite | None,
        plan: Mapping[str, Any],
        *,
        planned_by: str,
        beyond: int = 0,
        at: datetime | None = None,
    ) -> NumberedWrite | None:
        """Append a plan right after another, and return it; None if another writer was faster.

        Args:
            last: the plan that it follows, None for the first.
            plan: what is planned.
            planned_by: who plans, for the record.
            beyond: a number up to which what was derived carries the numbers of plans, of which
                the log may have lost the last ones; none of them is used again.
            at: when it was planned; now if left out.

        Raises:
            LogRewound: the number counts as used and nobody's plan carries it.
        """
        number = max(last.number if last else 0, beyond) + 1
        new = NumberedWrite(number=number, plan=plan, planned_at=at or self._clock.now())
        return new if self._write(new, planned_by) else None

    def _write(self, new: NumberedWrite, planned_by: str) -> bool:
        """Write one plan; False if another writer has taken its number."""
        number = new.number
        text = json.dumps(new.plan, ensure_ascii=False, sort_keys=True)
        row = [self._writer, number, text, new.planned_at, planned_by]
        table = pa.Table.from_pylist([dict(zip(ROW.names, row, strict=True))], schema=ROW)
        reach("plan.before")
        try:
            version = self._log_writer.append(self._table, table, number)
        except SequenceTaken:
            return False
        reach("plan.after")
        if version is None:
            newest = next(self.last(), None)
            if newest is None or newest.number < number:
                raise LogRewound(table=self._table, writer=self.app_id, number=number)
        return version is not None


def _plans(rows: pa.Table) -> Iterator[NumberedWrite]:
    """Yield plans; each is decoded when it is asked for."""
    for row in rows.to_pylist():
        yield NumberedWrite(
            number=row["number"], plan=json.loads(row["plan"]), planned_at=row["planned_at"]
        )
