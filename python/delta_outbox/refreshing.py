"""Refresh the projection: plan a range of the logs, fold it, merge it; lost races are no errors.

dbt takes the same steps in one SQL script (macros/projection/refresh_script.sql), with the same
macros. Here the folded rows are kept between the steps, which a script cannot: planning the fold
for every stage of a merge costs more than all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.clock import Clock
from delta_outbox.conflicts import is_conflict
from delta_outbox.errors import ChangeFeedGone, SequenceTaken
from delta_outbox.failpoints import reach
from delta_outbox.progress import NumberedPlan, NumberedPlans
from delta_outbox.session import end_own_session, kept
from delta_outbox.statements import Statements
from delta_outbox.storage import writing_to
from delta_outbox.tables import Tables
from delta_outbox.tails import LOGS, Tails, listed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITER: Final = "projection"
APP_ID: Final = "outbox/projection"
ATTEMPTS: Final = 100
_SETTINGS: Final = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)
_FEED_GONE: Final = (
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "DELTA_MISSING_CHANGE_DATA",
    "FILE_NOT_EXIST",
)


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
        """Read nothing yet."""
        self._spark = spark
        self._tables = tables
        self._statements = statements
        self._tails = Tails(spark, tables, statements)
        self._plans = NumberedPlans(
            spark, tables, writer=WRITER, clock=clock, app_id="outbox/projection-plan"
        )

    def close(self) -> None:
        """End the session."""
        end_own_session(self._spark)

    def run(
        self,
        heads: Mapping[str, int],
        *,
        applied: NumberedPlan | None,
        planned_by: str,
        rebuild: bool,
    ) -> NumberedPlan:
        """Bring the projection up to the heads of the logs.

        Args:
            heads: version of each log.
            applied: a plan whose rows are known to be there, None if there is none.
            planned_by: who asks, for the record.
            rebuild: derive everything anew.

        Returns:
            The plan that the projection stands at.

        Raises:
            ChangeFeedGone: the feed of a log no longer reaches back to the last plan.
            SequenceTaken: other writers were faster many times in a row.
        """
        done = applied.number if applied else 0
        last = applied  # if it is not the last one, the plan after it is taken, and we look
        for _ in range(ATTEMPTS):
            # A plan that somebody left unfinished is finished first.
            if last is None or last.number <= done or self._apply(last):
                done = last.number if last else 0
                new = self._plans.append_after(
                    last, _plan(last, heads, rebuild=rebuild), planned_by=planned_by
                )
                if new is not None:  # else somebody else planned, perhaps less than we need
                    rebuild = False
                    if self._apply(new):
                        return new
            last = next(self._plans.last(), None)
        raise SequenceTaken(writer=APP_ID, number=done + 1)

    def _apply(self, plan: NumberedPlan) -> bool:
        """Write the rows of a plan, whoever made it; False if another writer came in between.

        Where somebody has written them already, Delta skips them.
        """
        ranges = plan.plan
        to = {log: int(ranges[log]["to"]) for log in LOGS}
        after = {log: int(ranges[log]["after"]) for log in LOGS}
        states: tuple[str, ...]
        if not ranges.get("rebuild") and after == to:
            return True  # planned to say that there is nothing new
        try:
            if ranges.get("rebuild"):
                self._tails.whole(to)
                states, statement = ("",), "overwrite"
            else:
                self._tails.between(after, to)
                states, statement = self._tails.from_states(), "merge"
            fold = self._statements.fill(f"fold_{self._tails.news}", from_states=listed(states))
            folded = kept(self._spark.sql(fold))
            folded.createOrReplaceTempView("outbox_folded")
            reach("rows.before")
            with self._numbered(plan.number), writing_to(self._tables.state):
                self._spark.sql(self._statements.fill(statement, from_states=listed(states)))
            reach("rows.after")
        except Exception as error:
            if is_conflict(error):
                return False
            if any(mark in str(error) for mark in _FEED_GONE):
                raise ChangeFeedGone(table=self._tables.events, version=to["events"]) from error
            raise
        return True

    @contextmanager
    def _numbered(self, number: int) -> Iterator[None]:
        """Give the writes of a block a version; readers find it in the commit as well."""
        mark = f"{APP_ID}/{number}"
        try:
            for name, value in zip(_SETTINGS, (APP_ID, str(number), mark), strict=True):
                self._spark.conf.set(name, value)
            yield
        finally:
            for name in _SETTINGS:
                self._spark.conf.unset(name)


def _plan(last: NumberedPlan | None, heads: Mapping[str, int], *, rebuild: bool) -> dict[str, Any]:
    """Return the plan that follows: from where the last one ended, or from the beginning."""
    anew = rebuild or last is None
    plan: dict[str, Any] = {"rebuild": anew}
    for log in LOGS:
        done = int(last.plan[log]["to"]) if last else -1
        plan[log] = {"after": -1 if anew else done, "to": max(done, heads[log])}
    return plan
