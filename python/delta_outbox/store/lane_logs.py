"""The transition logs of all lanes of the current epoch, as one relay sees them.

What is known of the epoch may be old, never wrong: the lanes of one that has ended take no append
any more, and whoever loses there reads again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import LaneClosed, SequenceTaken
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.log_writer import ATTEMPTS
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.delta.spark_appends import CHECKPOINT
from delta_outbox.store.epochs import FIRST, WRITER, Epoch, read_epoch
from delta_outbox.store.transition_log import TransitionLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


class LaneLogs:
    """The logs of the lanes.

    Args:
        spark: the session to write with.
        tables: the names of the relations.
        relay_id: the writer, on every row that is appended.
        clock: the time.
    """

    def __init__(self, spark: SparkSession, tables: Tables, *, relay_id: str, clock: Clock) -> None:
        self._spark = spark
        self._tables = tables
        self._relay_id = relay_id
        self.plans = NumberedWrites(spark, tables, writer=WRITER, clock=clock)
        self._epoch = FIRST
        self._logs = self._opened(FIRST)
        self._is_read = False

    def __iter__(self) -> Iterator[TransitionLog]:
        return iter(self._logs)

    @property
    def epoch(self) -> Epoch:
        """The lanes as they were last read, which is done the first time."""
        if not self._is_read:
            self.read()
        return self._epoch

    @property
    def first(self) -> TransitionLog:
        """The log of the first lane; the only one, unless somebody has asked for more."""
        return self._logs[0]

    def read(self) -> bool:
        """Read how many lanes there are; say whether that has changed."""
        self._is_read = True
        self.plans.have_news()  # from now on
        before, now = self._epoch, read_epoch(next(self.plans.last(), None))
        if now == before:
            return False
        self._epoch = now
        if now.number != before.number:
            for log in self._logs:
                log.is_over = True
            self._logs = self._opened(now)
        logger.info("lanes_read", extra={"epoch": now.number, "lanes": now.lanes})
        return True

    def watch(self) -> bool:
        """Read anew if somebody may have changed the lanes since; say whether somebody has."""
        return self.plans.have_news() and self.read()

    def of(self, deliveries: pa.Table) -> TransitionLog:
        """Return the log of deliveries of one lane.

        Args:
            deliveries: at least one; columns ordering_key and event_id, and any others.
        """
        if self.epoch.lanes == 1:
            return self.first
        row = deliveries.slice(0, 1).select(["ordering_key", "event_id"]).to_pylist()[0]
        return self._logs[self._epoch.lane_of(**row)]

    def parts(self, rows: pa.Table) -> list[tuple[TransitionLog, pa.Table]]:
        """Return rows lane by lane, that of the first one first, each with the log of its lane.

        Whoever appends several parts asks once: an append that loses to the end of the epoch opens
        other logs, whose positions say nothing of what these rows were decided by.

        Args:
            rows: columns ordering_key and event_id, and any others.
        """
        parts = self.epoch.parts(rows)
        return [(self._logs[lane], part) for lane, part in parts.items()]

    def catch_up(self, version: int | None = None) -> None:
        """Move the known positions to the ends of the logs.

        Args:
            version: as `TransitionLog.catch_up` takes it.
        """
        if self.epoch.lanes == 1:
            self.first.catch_up(version)
            return
        version = self.first.newest_here() if version is None else version
        if version is not None and all(log.follow(version) for log in self._logs):
            return
        table = self._tables.transitions
        log_now = table if version is None else f"{table} version as of {version}"
        rows = self._spark.sql(
            f"select lane, max(sequence) as sequence from {log_now} "
            f"where epoch = {self._epoch.number} group by lane"
        ).toArrow()
        ends = dict(zip(rows["lane"].to_pylist(), rows["sequence"].to_pylist(), strict=True))
        for log in self._logs:
            log.move(ends.get(log.lane, 0), version=version)

    @property
    def positions(self) -> tuple[int, ...]:
        """The known position of each lane."""
        return tuple(log.sequence for log in self._logs)

    def passed(self, lanes: Set[int]) -> tuple[int, ...]:
        """Return up to where others may have appended to some lanes, as far as is known.

        Args:
            lanes: which ones.
        """
        return tuple(log.passed for log in self._logs if log.lane in lanes)

    def has_all(self, *, after: int, to: int, lanes: Set[int]) -> bool:
        """Say whether what was committed to some lanes between two versions are appends of ours.

        Args:
            after: not included.
            to: included.
            lanes: which ones; what others append elsewhere does not matter.
        """
        if self.epoch.lanes == 1:  # an append that has won proves that nobody was before it
            return to in (self.first.version, after)
        history, ours = (
            CommitHistory(self._spark),
            {one for log in self._logs for one in log.versions},
        )
        elsewhere = {log.app_id for log in self._logs if log.lane not in lanes} | {CHECKPOINT}
        return all(
            version in ours
            or set() < history.writers(self._tables.transitions, version) <= elsewhere
            for version in range(after + 1, to + 1)
        )

    def append_endings(self, rows: pa.Table) -> None:
        """Append endings, each to its lane; those whose claim somebody else has ended are void.

        Args:
            rows: as `claims.ending_rows` makes them.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        for log, part in self.parts(rows):
            log.append_endings(part)

    def append_until_won(self, rows: pa.Table, again: Callable[[], pa.Table]) -> int:
        """Append rows, each to its lane, deciding anew after each race that was lost.

        Args:
            rows: as `TransitionLog.append` takes them, and their ordering_key.
            again: returns the rows that still hold, of all lanes, with the positions at the ends.

        Returns:
            How many rows were appended.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
            LaneClosed: what is left has to wait for the next epoch.
        """
        count = 0
        for _ in range(ATTEMPTS):
            try:
                for log, part in self.parts(rows):
                    log.append(part)
                    count += part.num_rows
                return count
            except SequenceTaken as taken:
                if isinstance(taken, LaneClosed) and self._epoch.is_ending:
                    raise
                rows = again()
        raise SequenceTaken(writer=self.first.app_id, number=self.first.sequence + 1)

    def _is_ending(self, epoch: int) -> bool:
        """Say whether an epoch has ended or is being ended, as the plans say now."""
        self.read()
        return self._epoch.number != epoch or self._epoch.is_ending

    def _opened(self, epoch: Epoch) -> list[TransitionLog]:
        return [
            TransitionLog(
                self._spark,
                self._tables,
                relay_id=self._relay_id,
                epoch=epoch.number,
                lane=lane,
                is_ending=self._is_ending,
            )
            for lane in range(epoch.lanes)
        ]
