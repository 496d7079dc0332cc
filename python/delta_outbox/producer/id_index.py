"""The id index: a number in memory for each id that the event log holds.

To look ids up in the log is a query of all ids within the horizon (decision 0004): three quarters
of what a small append costs, and half of a relay's poll with a few new events. Where ids grow with
time, it is enough to ask whether there is one between the least and the greatest. Where they do
not and a batch is large or not the first, or once that was asked often enough, a number is kept for
each id of the log, what others have appended since is read, and the log is asked only where a
number says that an id may be known (decisions 0023, 0027).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.hashing import in_parts
from delta_outbox.core.horizon import Range, days_condition
from delta_outbox.core.literals import text_literal
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import Commit
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.delta.table_files import may_hold_between
from delta_outbox.projection.tails import LARGE_QUERY_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_IDS: Final = 10_000_000  # 80 MB; who has more within the horizon is asked each time
MOST_COMMITS: Final = 1000  # of others; after more of them it is as cheap to begin anew
MOST_RECENT: Final = 100_000  # ids that are not in order yet
MOST_NEW: Final = 1_000_000  # of others; after more of them, too
ASKED_FIRST: Final = 16  # times; to learn two million ids costs as much
_SHIFT: Final = 31  # so that a number fits a bigint

Numbers = npt.NDArray[np.int64]


class IdNumbers:
    """A number for each of many ids: 8 bytes, where the id itself would take a hundred."""

    def __init__(self, numbers: Numbers) -> None:
        """Take the numbers of ids, in any order; the array is not kept."""
        self._sorted = np.sort(numbers)
        self._recent: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    def add(self, numbers: Numbers) -> None:
        """Add the numbers of further ids."""
        if len(self._recent) + len(numbers) <= MOST_RECENT:
            self._recent.update(numbers.tolist())
            return
        recent = np.concatenate((np.fromiter(self._recent, np.int64), numbers))
        # Two runs, the second put in order first: merged in milliseconds, where numpy's union of
        # millions takes seconds.
        recent.sort()
        self._sorted = np.concatenate((self._sorted, recent))
        self._sorted.sort(kind="stable")
        self._recent = set()

    def hold_any(self, numbers: Numbers) -> bool:
        """Say whether one of the numbers is here."""
        if self._recent and not self._recent.isdisjoint(numbers.tolist()):
            return True
        places = np.searchsorted(self._sorted, numbers)
        inside = places < len(self._sorted)
        return bool(np.any(self._sorted[places[inside]] == numbers[inside]))


def number_of(event_id: str) -> int:
    """Return the number of an id, as `number_in_sql` makes it.

    Args:
        event_id: any text.
    """
    there, back = (zlib.crc32(text.encode()) for text in (event_id, event_id[::-1]))
    return there << _SHIFT ^ back


def _numbers_of(event_ids: pa.ChunkedArray) -> Numbers:
    """Return the numbers of ids, of few at a time: Python keeps a hundred bytes for each."""
    parts = [
        np.fromiter(map(number_of, part.to_pylist()), np.int64) for part in in_parts(event_ids)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def number_in_sql(column: str) -> str:
    """Return the number of an id as an SQL expression.

    Args:
        column: of ids.
    """
    return f"shiftleft(crc32({column}), {_SHIFT}) ^ crc32(reverse({column}))"


class IdIndex:
    """The ids of one event log, as far as one producer or relay knows them: certain about what is
    new.

    Args:
        spark: the session to read with.
        events: the full name of the log.
    """

    def __init__(self, spark: SparkSession, events: str) -> None:
        self._spark = spark
        self._events = events
        self._history = CommitHistory(spark)
        self._reader = LogReader(spark)
        self._ids: IdNumbers | None = None
        self._since = date.max  # ids of earlier days are not known
        self._at: Commit | None = None  # the log up to here is known
        self._asked = 0  # how often
        self._asked_for = np.empty(0, np.int64)  # the numbers of the last ids, if they were needed
        self._is_of_use = True

    @property
    def is_read(self) -> bool:
        """Say whether the ids are known; until then each question is one to the log."""
        return self._ids is not None

    def may_hold(
        self, event_ids: pa.ChunkedArray, *, since: date, version: int | None = None
    ) -> bool:
        """Say whether the log may hold one of these ids; False is certain.

        Args:
            event_ids: of a batch, at least one.
            since: ids of earlier days do not count.
            version: of the log, what came later does not count; its end if left out.
        """
        self._asked += 1
        asks = (
            self._asked <= ASKED_FIRST or not self._is_of_use or len(event_ids) >= LARGE_QUERY_ROWS
        )
        if self._ids is None and asks:
            ends = pc.min_max(event_ids).as_py()
            if not self._are_between(ends["min"], ends["max"], since=since, version=version):
                return False
        is_once = self._asked == 1 and len(event_ids) < LARGE_QUERY_ROWS
        if is_once or not self._is_of_use:
            return True
        if not self._is_up_to_date(since, version):
            self._read(since, version)
        if self._ids is None:
            return True
        self._asked_for = _numbers_of(event_ids)
        return self._ids.hold_any(self._asked_for)

    def are_there(self, event_ids: pa.ChunkedArray, ranges: Sequence[Range], version: int) -> bool:
        """Say whether the log has one of these ids, by asking it.

        Args:
            event_ids: of a batch, at least one.
            ranges: of the days that count.
            version: of the log, what came later does not count.
        """
        ids = pa.table({"event_id": event_ids})
        ends = pc.min_max(event_ids).as_py()
        found = self._spark.sql(
            f"select event_id from {self._events} version as of {version} "
            f"where ({days_condition(ranges)}) "
            f"and event_id between {text_literal(ends['min'])} and {text_literal(ends['max'])}"
        )
        return not found.join(self._spark.createDataFrame(ids), "event_id", "left_semi").isEmpty()

    def add_asked(self, *, version: int) -> None:
        """Note that the ids that were last asked for are all that the log has beyond what is known.

        Args:
            version: of the log that has them.
        """
        if self._ids is not None:
            self._ids.add(self._asked_for)
            self._at = self._history.at(self._events, version)

    def appended(self, event_ids: pa.ChunkedArray, *, tag: str) -> None:
        """Note what this producer has appended itself.

        Args:
            event_ids: all of the commit.
            tag: the commit's `userMetadata`, which no other has.
        """
        if self._ids is None or self._at is None:
            return
        self._ids.add(_numbers_of(event_ids))
        commits = self._history.after(self._events, self._at, most=1)
        if commits and commits[0].tag == tag:
            self._at = commits[0]

    def forget(self) -> None:
        """Begin anew: an append may or may not have happened."""
        self._ids = None

    def _are_between(self, first: str, last: str, *, since: date, version: int | None) -> bool:
        """Say whether the log has an id between two of them; where its files do not rule that out,
        by asking it.
        """
        by_files = may_hold_between(
            self._spark, self._events, version=version, column="event_id", first=first, last=last
        )
        if by_files is False:
            return False
        at = "" if version is None else f"version as of {version} "
        found = self._spark.sql(
            f"select 1 from {self._events} {at}where created_date >= date'{since}' "
            f"and event_id between {text_literal(first)} and {text_literal(last)} limit 1"
        )
        return not found.isEmpty()

    def _is_up_to_date(self, since: date, version: int | None) -> bool:
        """Read what was appended since, and say whether that was possible."""
        if self._ids is None or self._at is None or since < self._since:
            return False
        if version is not None and version < self._at.version:  # a relay has begun anew
            return False
        commits = self._history.after(self._events, self._at, most=MOST_COMMITS)
        if commits is None or any(commit.operation == "RESTORE" for commit in commits):
            return False
        if version is not None:
            commits = [commit for commit in commits if commit.version <= version]
        if commits:
            new = self._reader.few_added(
                self._events,
                after=self._at.version,
                to=commits[-1].version,
                columns=("event_id",),
                most=MOST_NEW,
            )
            if new is None:
                return False
            self._ids.add(_numbers_of(new["event_id"]))
            self._at = commits[-1]
        return len(self._ids) <= MOST_IDS

    def _read(self, since: date, version: int | None) -> None:
        """Learn all ids from a day on, unless there are too many."""
        self._ids, self._at = None, self._history.at(self._events, version)
        if self._at is None:
            return
        table = self._spark.sql(
            f"select {number_in_sql('event_id')} as number "
            f"from {self._events} version as of {self._at.version} "
            f"where created_date >= date'{since}' limit {MOST_IDS + 1}"
        ).toArrow()
        numbers: Numbers = table["number"].to_numpy()
        self._is_of_use = len(numbers) <= MOST_IDS
        if self._is_of_use:
            self._ids, self._since = IdNumbers(numbers), since
