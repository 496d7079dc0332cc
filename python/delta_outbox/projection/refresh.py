"""Refreshes the projection: plans a range of the logs, folds it, merges it; a lost race is no
error.

dbt takes the same steps in one SQL script, with the same macros. Here the folded rows are kept
between the steps, which a script cannot: planning the fold for every stage of a merge costs more
than all the rest.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import ChangeFeedGone, CommitsLost, SequenceTaken
from delta_outbox.core.failpoints import reach
from delta_outbox.core.literals import listed
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.delta_errors import is_conflict, is_feed_gone
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.frames import frame_of
from delta_outbox.delta.log_reader import changes
from delta_outbox.delta.log_writer import LogWriter
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.delta.storage_errors import writing_to
from delta_outbox.delta.table_files import have_files
from delta_outbox.projection.tails import LOGS, Tails
from delta_outbox.runtime.session import end_own_session, kept, set_for_good
from delta_outbox.runtime.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

WRITER: Final = "projection"
APP_ID: Final = "outbox/projection"
PLAN_APP_ID: Final = "outbox/projection-plan"
ATTEMPTS: Final = 100
COMMITS_LOOKED_AT: Final = 50  # of maintenance, before all are
_REPLACES: Final = "replaces_destination"  # of a folded row: of which row it takes the place
_TAG: Final = re.compile(rf"{APP_ID}/(\d+)")
_SETTINGS: Final = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)


@dataclass(frozen=True, kw_only=True)
class RefreshCommit:
    """Which plan the projection stands at.

    Args:
        version: the latest commit version of the projection.
        plan: number of the plan.
    """

    version: int
    plan: int


@dataclass(frozen=True, kw_only=True)
class _Folded:
    """Rows of the projection, and how they get there.

    Args:
        statement: the text that writes them.
        rows: what is written; here if they are few.
    """

    statement: str
    rows: DataFrame | pa.Table


# twin: macros/projection/refresh/refresh_script.sql::refresh_script
class Refreshing:
    """Refreshes the projection of one outbox.

    Args:
        spark: a session of its own: a write version left in a session silently skips writes.
        tables: the names of the relations.
        statements: the compiled SQL.
        clock: the time.
    """

    def __init__(
        self, spark: SparkSession, tables: Tables, statements: Statements, *, clock: Clock
    ) -> None:
        self._spark = spark
        # Rows that are replaced may get another state than that which is replaced.
        set_for_good(spark, "spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false")
        self._tables = tables
        self._statements = statements
        self._tails = Tails(spark, tables, statements)
        self._writer = LogWriter(spark, app_id=APP_ID)
        self._plans = NumberedWrites(spark, tables, writer=WRITER, clock=clock, app_id=PLAN_APP_ID)

    def close(self) -> None:
        """End the session."""
        end_own_session(self._spark)

    def run(
        self,
        latest: Mapping[str, int],
        *,
        applied: NumberedWrite | None,
        planned_by: str,
        rebuild: bool,
    ) -> NumberedWrite:
        """Bring the projection up to the latest versions of the logs.

        Args:
            latest: version of each log.
            applied: a plan whose rows are known to be there; None if there is none, and then
                everything is derived anew.
            planned_by: who asks, for the record.
            rebuild: derive everything anew, whatever is there.

        Returns:
            The plan that the projection stands at.

        Raises:
            ChangeFeedGone: the feed of a log no longer reaches back to the last plan.
            CommitsLost: a log has lost commits that the last plan is about.
            SequenceTaken: other writers were faster many times in a row.
        """
        done = applied.number if applied else 0
        # If the one that is applied is not the last, the number after it is taken, and we look.
        last = applied or next(self._plans.last(), None)
        for _ in range(ATTEMPTS):
            if last is not None and not done and not rebuild:
                logger.warning("projection_unknown", extra={"plan": last.number})
                rebuild = True
            # A plan that somebody left unfinished is finished first; a rebuild needs none.
            if last is not None and last.number > done and not rebuild:
                check_reach(self._spark, self._tables, last)
                if self._apply(last):
                    done = self._stands_at(last)
            if last is None or last.number <= done or rebuild:
                new = self._plans.append_after(
                    last,
                    _plan(last, latest, rebuild=rebuild),
                    planned_by=planned_by,
                    beyond=self._used() if rebuild else 0,
                )
                if new is not None:  # else somebody else planned, perhaps less than we need
                    rebuild = False
                    if self._apply(new):
                        done = self._stands_at(new)
                        if done:
                            return new
            last = next(self._plans.last(), None)
        raise SequenceTaken(writer=APP_ID, number=done + 1)

    def _used(self) -> int:
        """Return the number of the plan that the projection stands at, there or lost; 0 if nothing
        says so.
        """
        newest = newest_refresh(self._spark, self._tables.state)
        return 0 if newest is None else newest.plan

    def _apply(self, plan: NumberedWrite) -> bool:
        """Write the rows of a plan, whoever made it; False if another writer came in between.

        Where somebody has written them already, Delta skips them.
        """
        ranges = plan.plan
        to = {log: int(ranges[log]["to"]) for log in LOGS}
        after = {log: int(ranges[log]["after"]) for log in LOGS}
        if not _has_rows(plan):
            return True
        try:
            if ranges.get("rebuild"):
                self._tails.whole(to)
            else:
                self._tails.between(after, to)
            self._write(self._fold(rebuilds=bool(ranges.get("rebuild"))), plan.number)
        except SequenceTaken:
            return False
        except ChangeFeedGone:  # the reader of a log knows of which one, and from where
            raise
        except Exception as error:
            if is_conflict(error):
                return False
            if is_feed_gone(error):
                raise ChangeFeedGone(table=self._tables.events, version=to["events"]) from error
            raise
        return True

    def _fold(self, *, rebuilds: bool) -> _Folded:
        """Fold what is in the views, and say how it is to be written."""
        if rebuilds:
            statement = "overwrite"
        elif self._tails.are_few:
            rows = self._folded().toArrow()
            are_new = rows[_REPLACES].null_count == rows.num_rows
            statement = "insert" if are_new else "merge"
            return _Folded(statement=statement, rows=rows)
        else:
            statement = self._way()
        folded = self._folded(with_untouched=statement == "replace")
        if statement == "merge":
            folded = kept(folded)  # it is read several times
            if folded.where(f"{_REPLACES} is not null").isEmpty():
                statement = "insert"
        return _Folded(statement=statement, rows=folded)

    def _write(self, folded: _Folded, number: int) -> None:
        """Write what was folded."""
        rows = folded.rows
        reach("rows.before")
        if folded.statement == "insert":
            new = (
                rows.drop_columns(_REPLACES) if isinstance(rows, pa.Table) else rows.drop(_REPLACES)
            )
            self._writer.append(self._tables.state, new, number, tag=_tag_of(number))
        else:
            frame = frame_of(self._spark, rows) if isinstance(rows, pa.Table) else rows
            frame.createOrReplaceTempView("outbox_folded")
            with writing_to(self._tables.state), self._numbered(number):
                self._spark.sql(self._statements.fill(folded.statement, **self._touched()))
            sync_outbox(self._spark, self._tables.schema)
        reach("rows.after")

    def _touched(self) -> Mapping[str, object]:
        """Return what the texts are told of the rows of the projection that are touched."""
        first, last = self._tails.arrivals()
        return {
            "touched": self._tails.touched,
            "from_states": listed(self._tails.from_states()),
            "first_arrival": first,
            "last_arrival": last,
        }

    def _way(self) -> str:
        """Return the statement that writes what is folded: rows that take the place of no other, as
        when all that came has been delivered since, are inserted; where most of what may be touched
        is, all of it is replaced, for to look for each row takes nearly twice as long.
        """
        if self._tails.fold == "new_events":
            return "insert"
        there = self._count()
        if self._tails.fold != "all" and not there:
            return "insert"
        return "replace" if self._tails.are_most_of(there) else "merge"

    def _folded(self, *, with_untouched: bool = False) -> DataFrame:
        """Return the rows to write, those of a backlog in the order in which it was appended: what
        later becomes of it touches few files then.
        """
        parts = self._tails.set_apart()
        texts = [
            self._statements.fill(
                "arrivals", source=changes(self._tables.events, after=after, to=to)
            )
            for after, to in parts
        ]
        if not (texts and self._tails.are_empty):
            also = str(with_untouched).lower()
            fold = self._tails.filled("fold", with_untouched=also, state=self._tables.state)
            texts.insert(0, fold)
        return reduce(lambda some, more: some.unionAll(more), map(self._spark.sql, texts))

    def _count(self) -> int:
        """Return how many rows the projection has that may be touched."""
        state, states = self._tables.state, self._tails.from_states()
        has_some = have_files(self._spark, state, version=None, column="state", values=states)
        if has_some is False:
            return 0
        found = self._spark.sql(
            f"select count(*) as rows from {state} where {self._tails.touched}"
        ).first()
        return int(found["rows"]) if found is not None else 0

    def _stands_at(self, plan: NumberedWrite) -> int:
        """Return the number of a plan if its rows are there, else 0.

        Delta skips a version that was used before without a word, also if nothing carries it.
        """
        if not _has_rows(plan):
            return plan.number
        newest = newest_refresh(self._spark, self._tables.state)
        return plan.number if newest is not None and newest.plan >= plan.number else 0

    @contextmanager
    def _numbered(self, number: int) -> Iterator[None]:
        """Give the writes of a block a version; readers find it in the commit as well."""
        values = APP_ID, str(number), _tag_of(number)
        try:
            for name, value in zip(_SETTINGS, values, strict=True):
                self._spark.conf.set(name, value)
            yield
        finally:
            for name in _SETTINGS:
                self._spark.conf.unset(name)


def _tag_of(number: int) -> str:
    """Return the commit tag of a plan, as `_TAG` reads it."""
    return f"{APP_ID}/{number}"


# twin: macros/projection/applied_plan.sql::applied_plan
def newest_refresh(spark: SparkSession, state: str) -> RefreshCommit | None:
    """Return which plan the projection stands at; None if nothing says so.

    Maintenance may have been committed since, and leaves the rows as they are. A RESTORE does not.

    Args:
        spark: the session to read with.
        state: the projection.
    """
    version = -1
    for commit in CommitHistory(spark).back(state, COMMITS_LOOKED_AT, None):
        version = max(version, commit.version)
        if commit.operation == "RESTORE":
            return None
        tag = _TAG.fullmatch(commit.tag or "")
        if tag:
            return RefreshCommit(version=version, plan=int(tag[1]))
    return None


def check_reach(spark: SparkSession, tables: Tables, plan: NumberedWrite) -> None:
    """Refuse a plan of which a log has lost commits; those that came in their place would be taken
    for them.

    Args:
        spark: the session to read with.
        tables: the names of the relations.
        plan: read before this call.

    Raises:
        CommitsLost: a log ends before the plan does.
    """
    for log in LOGS:
        table, to = tables[f"outbox_{log}"], int(plan.plan[log]["to"])
        newest = CommitHistory(spark).newest(table)
        head = newest.version if newest is not None else -1
        if head < to:
            raise CommitsLost(table=table, version=to, head=head)


def _has_rows(plan: NumberedWrite) -> bool:
    """Say whether a plan is more than the word that there is nothing new."""
    ranges = plan.plan
    if ranges.get("rebuild"):
        return True
    return any(ranges[log]["after"] != ranges[log]["to"] for log in LOGS)


def _plan(
    last: NumberedWrite | None, latest: Mapping[str, int], *, rebuild: bool
) -> dict[str, Any]:
    """Return the plan that follows: from where the last one ended, or from the beginning.

    One from the beginning goes as far as the logs do, whatever the last one says: where they have
    lost commits it went further.
    """
    anew = rebuild or last is None
    plan: dict[str, Any] = {"rebuild": anew}
    for log in LOGS:
        done = int(last.plan[log]["to"]) if last and not anew else -1
        plan[log] = {"after": done, "to": max(done, latest[log])}
    return plan
