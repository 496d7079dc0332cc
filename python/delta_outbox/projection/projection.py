"""Refreshes the projection, and makes read views of it and the tails of the logs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import PLANS_LOST, ChangeFeedGone, LogRewound, NoOutboxHere
from delta_outbox.core.literals import listed
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.delta_errors import is_feed_gone
from delta_outbox.delta.frames import frame_of
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.delta.table_files import few_rows, have_files
from delta_outbox.lifecycle.states import OPEN_STATES
from delta_outbox.projection.refresh import (
    PLAN_APP_ID,
    WRITER,
    Refreshing,
    check_reach,
    newest_refresh,
)
from delta_outbox.projection.tails import LOGS, Tails
from delta_outbox.runtime.session import kept, own_session
from delta_outbox.runtime.statements import Statements

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

SHORT_TAIL: Final = 10  # commits; more are folded only if nobody has refreshed the projection
MOST_TAIL: Final = 100  # commits that are folded for one question, unless others refresh anyway
OTHERS_REFRESH: Final = timedelta(minutes=1)  # whoever refreshes regularly has done so since
FEW_ROWS: Final = 10_000  # of the projection; to hand more to Spark takes longer than to read them
_ROWS: Final = "outbox_state_rows"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ReadView:
    """The open deliveries, as they were read.

    Args:
        frame: with the columns of the projection.
        versions: of each log, up to which it shows them.
        tail: how many commits came after the projection.
    """

    frame: DataFrame
    versions: Mapping[str, int]
    tail: int


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """How far a version of the projection has seen the logs.

    Args:
        version: commit version of the projection.
        plan: the plan that it stands at.
    """

    version: int
    plan: NumberedWrite

    @property
    def planned_at(self) -> datetime:
        """Return when its plan was made: the views show what was committed until shortly before."""
        return self.plan.planned_at

    @property
    def versions(self) -> dict[str, int]:
        """Return the version of each log, inclusive."""
        return {log: int(self.plan.plan[log]["to"]) for log in LOGS}

    def covers(self, latest: Mapping[str, int]) -> bool:
        """Say whether nothing was committed after it.

        Args:
            latest: as `Projection.latest_versions` returns them.
        """
        return self.tail(latest) == 0

    def tail(self, latest: Mapping[str, int]) -> int:
        """Return how many commits the logs have after it.

        Args:
            latest: as `Projection.latest_versions` returns them.
        """
        return sum(max(0, latest[log] - version) for log, version in self.versions.items())


class Projection:
    """The projection of one outbox.

    Args:
        spark: the session; refreshes run in one of their own.
        tables: the names of the relations.
        statements: the compiled SQL.
        clock: the time.
    """

    def __init__(
        self, spark: SparkSession, tables: Tables, statements: Statements, *, clock: Clock
    ) -> None:
        """Open a session for the refreshes: a write version left in a session skips writes."""
        self._spark = spark
        self._tables = tables
        self._statements = statements
        self._clock = clock
        self._refreshing = Refreshing(own_session(spark), tables, statements, clock=clock)
        self._plans = NumberedWrites(spark, tables, writer=WRITER, clock=clock)
        self._known: Watermark | None = None
        self._lock = threading.Lock()

    def refresh(
        self,
        *,
        planned_by: str,
        rebuild: bool = False,
        touch: bool = False,
        latest: Mapping[str, int] | None = None,
    ) -> int:
        """Bring the projection up to all that was committed before this call.

        Threads may call it at once; they take turns.

        Args:
            planned_by: who asks, for the record.
            rebuild: derive everything anew from the logs.
            touch: move `outbox_freshness.refreshed_at` although there is nothing new.
            latest: up to these only, as `latest_versions` has just returned them.

        Returns:
            The number of the plan that the projection stands at.

        Raises:
            ChangeFeedGone: the feed of a log no longer reaches back to the watermark.
            CommitsLost: a log has lost commits that the projection was derived from.
            LogRewound: the plan that the projection stands at is no longer there.
            SequenceTaken: other writers were faster many times in a row.
        """
        with self._lock:  # the session has one set of views and numbers
            latest = self.latest_versions() if latest is None else latest
            # A rebuild asks nothing of what is there: it is to help whatever that is.
            seen = None if rebuild else self._watermark_now()
            if seen is not None:
                self._check_reach(seen, latest)
                if seen.covers(latest) and not touch:
                    self._known = seen
                    return seen.plan.number
            plan = self._refreshing.run(
                latest,
                applied=seen.plan if seen is not None else None,
                planned_by=planned_by,
                rebuild=rebuild,
            )
            self._known = self.watermark(plan)
            return plan.number

    def close(self) -> None:
        """End the session of the refreshes."""
        self._refreshing.close()

    def latest_versions(self) -> dict[str, int]:
        """Return the latest versions of the logs, that of the events read last.

        In this order every transition and command up to the one finds its event up to the other.
        """
        return {
            "commands": self.latest_version(self._tables.commands),
            "transitions": self.latest_version(self._tables.transitions),
            "events": self.latest_version(self._tables.events),
        }

    def latest_version(self, table: str) -> int:
        """Return the latest version of a log.

        Args:
            table: its full name.

        Raises:
            NoOutboxHere: there is no such table with commits.
        """
        commit = CommitHistory(self._spark).newest(table)
        if commit is None:
            raise NoOutboxHere(where=table)
        return commit.version

    def latest_version_here(self, table: str) -> int | None:
        """Return the latest version of a log; None where that costs a query.

        Args:
            table: its full name.
        """
        commit = CommitHistory(self._spark).newest_here(table)
        return commit.version if commit is not None else None

    def watermark(self, expected: NumberedWrite | None = None) -> Watermark | None:
        """Return the newest version of the projection and how far it has seen the logs.

        None if nothing says so: it is new, or was made or restored by somebody else.

        Args:
            expected: the plan that it probably stands at, so that it need not be read.

        Raises:
            LogRewound: the plan is no longer there.
        """
        newest = newest_refresh(self._spark, self._tables.state)
        if newest is None:
            return None
        plan = expected
        if plan is None or plan.number != newest.plan:
            plan = self._plans.numbered(newest.plan)
        if plan is None:
            raise LogRewound(
                table=self._tables.progress,
                writer=PLAN_APP_ID,
                number=newest.plan,
                remedy=PLANS_LOST,
            )
        return Watermark(version=newest.version, plan=plan)

    def _watermark_now(self) -> Watermark | None:
        """Return the watermark now; its plan is read only if it is another one than is known."""
        known = self._known
        return self.watermark(known.plan if known is not None else None)

    def is_anything_open(self, seen: Watermark) -> bool:
        """Say whether a version of the projection has open deliveries.

        Args:
            seen: the version.
        """
        found = have_files(
            self._spark,
            self._tables.state,
            version=seen.version,
            column="state",
            values=OPEN_STATES,
        )
        if found is not None:
            return found
        rows = self._spark.sql(
            f"select 1 from {self._tables.state} version as of {seen.version} "
            f"where state in ({listed(OPEN_STATES)}) limit 1"
        )
        return not rows.isEmpty()

    def known_watermark(self) -> Watermark | None:
        """Return the watermark as this object knows it, read once after each of its refreshes.

        Somebody else's refresh makes it old, never wrong: the tails are longer then.
        """
        if self._known is None:
            self._known = self.watermark()
        return self._known

    def tail(self, latest: Mapping[str, int]) -> int:
        """Return how many commits the logs have after the projection.

        Args:
            latest: as `latest_versions` has just returned them.

        Raises:
            NoOutboxHere: the projection was never refreshed.
        """
        return self._must_know().tail(latest)

    def _check_reach(self, seen: Watermark, latest: Mapping[str, int]) -> None:
        """Refuse a projection that was derived from commits that a log has lost.

        Raises:
            CommitsLost: it was.
        """
        if any(latest[log] < version for log, version in seen.versions.items()):
            check_reach(self._spark, self._tables, seen.plan)  # or somebody has refreshed since

    def _must_know(self) -> Watermark:
        seen = self.known_watermark()
        if seen is None:
            raise NoOutboxHere(where=self._tables.state)
        return seen

    def read_view(
        self, *, with_holding: bool = False, latest: Mapping[str, int] | None = None
    ) -> ReadView:
        """Return the open deliveries now: the projection at a version, plus the tails of the logs.

        Args:
            with_holding: show the DEAD as well that may hold their key.
            latest: as `latest_versions` has just returned them.

        Returns:
            Rows in PENDING and CLAIMED only (and DEAD, if asked for), up to the latest versions; or
            further, where somebody has refreshed the projection since these were asked for.

        Raises:
            NoOutboxHere: the projection was never refreshed.
            ChangeFeedGone: the feed of a log no longer reaches back to the projection.
            CommitsLost: a log has lost commits that the projection was derived from.
        """
        states = OPEN_STATES + (("DEAD",) if with_holding else ())
        shown = self._statements.fill("open_or_holding", states=listed(states))
        # Kept: to plan the fold costs more than to run it, and several questions are asked of it.
        frame, versions, tail = self._shown(shown, latest, kept, states=states)
        return ReadView(frame=frame, versions=versions, tail=tail)

    def standing(self, narrow: Callable[[DataFrame], DataFrame], *, planned_by: str) -> pa.Table:
        """Return deliveries as they stand now, open or ended. That writes nothing, unless nobody
        has refreshed the projection for `MOST_TAIL` commits and `OTHERS_REFRESH`: two refreshes at
        once are in each other's way, and a fold of some hundred commits costs less.

        Args:
            narrow: chooses rows and columns of a table with the columns of the projection.
            planned_by: who asks, for the record of a refresh.

        Raises:
            ChangeFeedGone: the feed of a log no longer reaches back to the projection.
            CommitsLost: a log has lost commits that the projection was derived from.
            LogRewound: the plan that the projection stands at is no longer there.
            SequenceTaken: other writers were faster many times in a row.
        """
        latest = self.latest_versions()
        if self._is_long(latest):
            seen = self._known = self._watermark_now()  # others may have refreshed since
            if self._is_long(latest) and not self._is_kept(seen):
                self.refresh(planned_by=planned_by, latest=latest)
        return self._shown("true", latest, lambda frame: narrow(frame).toArrow())[0]

    def _has_moved(self, seen: Watermark) -> bool:
        """Say whether others may have refreshed since; False where that costs a query."""
        return self.latest_version_here(self._tables.state) not in (None, seen.version)

    def _is_long(self, latest: Mapping[str, int]) -> bool:
        seen = self.known_watermark()
        return seen is None or seen.tail(latest) > MOST_TAIL

    def _is_kept(self, seen: Watermark | None) -> bool:
        """Say whether others refresh the projection, as far as can be known."""
        return seen is not None and abs(self._clock.now() - seen.planned_at) < OTHERS_REFRESH

    def _shown(
        self,
        shown: str,
        latest: Mapping[str, int] | None,
        read: Callable[[DataFrame], T],
        states: Sequence[str] = (),
    ) -> tuple[T, Mapping[str, int], int]:
        """Return what is read of what fulfils a condition, up to which version of each log that is,
        and how many commits the tails hold. What users name is not for the condition, which goes
        into a text with placeholders. Only some states fulfil it, if they are named.
        """
        try:
            return self._read_view(shown, latest, read, states)
        except Exception as error:
            if not is_feed_gone(error):
                raise
            # Maintenance may pass what we know of the projection, if others refresh it.
            logger.warning("read_view_too_old")
            self._known = None
        try:
            return self._read_view(shown, latest, read, states)
        except ChangeFeedGone:  # the reader of a log knows of which one, and from where
            raise
        except Exception as error:
            if not is_feed_gone(error):
                raise
            raise ChangeFeedGone(
                table=self._tables.events, version=self._must_know().versions["events"] + 1
            ) from error

    def _read_view(
        self,
        shown: str,
        latest: Mapping[str, int] | None,
        read: Callable[[DataFrame], T],
        states: Sequence[str],
    ) -> tuple[T, Mapping[str, int], int]:
        seen = self._must_know()
        latest = self.latest_versions() if latest is None else latest
        if seen.tail(latest) > SHORT_TAIL and self._has_moved(seen):
            seen = self._known = self._watermark_now() or seen
        self._check_reach(seen, latest)
        if seen.covers(latest):
            text = f"select * from {self._state(seen, states)} where {shown}"
        else:
            tails = Tails(self._spark, self._tables, self._statements)
            tails.between(seen.versions, latest)
            touched = {*tails.from_states()}  # a replay also takes rows that have ended
            state = self._state(seen, states if touched <= {*states} else ())
            text = tails.filled("read_view", with_untouched="false", shown=shown, state=state)
        versions = {log: max(latest[log], version) for log, version in seen.versions.items()}
        return read(self._spark.sql(text)), versions, seen.tail(latest)

    def _state(self, seen: Watermark, states: Collection[str]) -> str:
        """Return a version of the projection, to select from; if states are named, what it has in
        these is enough. Few rows are read here: to plan how Spark reads them takes longer than most
        of what is asked of them.
        """
        state = self._tables.state
        rows = None
        if states:
            rows = few_rows(
                self._spark,
                state,
                version=seen.version,
                column="state",
                values=states,
                most=FEW_ROWS,
            )
        if rows is None:
            return f"{state} version as of {seen.version}"
        frame_of(self._spark, rows).createOrReplaceTempView(_ROWS)
        return _ROWS
