"""Reads what commits have added to a log: from its files where they are on this machine, else
through Spark's change feed.

To ask Spark what a few commits have added takes half a second, all of it planning, and for many
rows ten times what Arrow takes to read them (decision 0024). Files are read where Spark's driver
and the log are on this machine, the table asks nothing of its readers that a file alone does not
tell, and the commits do nothing but append. Whatever else there is, and any file that cannot be
read, is Spark's to say (decision 0071).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.core.hashing import may_repeat
from delta_outbox.delta.added_files import AddedFile
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import added_files
from delta_outbox.delta.delta_errors import is_feed_gone
from delta_outbox.delta.files.event_files import (
    FILE,
    LOCATED,
    ROW,
    VERSION,
    UnreadableFile,
    read_columns,
    read_files,
    with_locations,
)
from delta_outbox.delta.files.log_state import state_here
from delta_outbox.delta.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

LARGEST: Final = 1_000_000  # rows of one commit that are held at once
MOST_COMMITS: Final = 100  # whose files are looked into; to ask Spark costs less for more
NOWHERE: Final = (FILE, ROW)  # what the change feed does not tell

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Added:
    """Rows that commits have added.

    Args:
        rows: the columns that were asked for, in no order.
        to: the last commit that was read.
    """

    rows: pa.Table
    to: int


class LogReader:
    """Reads the logs of a Spark.

    Where maintenance has removed what is needed of the past, each method that reads it, but for
    `few_added`, raises `ChangeFeedGone`.

    Args:
        spark: the session to ask.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._history = CommitHistory(spark)

    def added(
        self, log: str, *, after: int, to: int, columns: Sequence[str], most: int | None = None
    ) -> Added | None:
        """Return the rows that were added.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included; later than the other.
            columns: their names; also `VERSION`, the commit that has added a row, and `FILE` and
                `ROW`, where it lies, null where that is not known.
            most: rows, any number if None; reading ends before the commit that would exceed them.
                Of the first commit up to `LARGEST` are read all the same.

        Returns:
            None if the first commit has more.
        """

        def by_files(files: Sequence[AddedFile], end: int) -> Added | None:
            if _exceed(sum(file.rows for file in files), most):
                return None
            rows = read_files(files, columns) if files else _no_rows(columns)
            return Added(rows=rows, to=end)

        def by_feed() -> Added | None:
            rows = self._from_feed(log, after, to, columns, limit=most)
            if most is None or rows.num_rows <= most:
                return Added(rows=rows, to=to)
            [(end, count), *others] = self.counts(log, after=after, to=to).items()
            if _exceed(count, most):
                return None
            for version, more in others:
                count += more
                if count > most:
                    break
                end = version
            return Added(rows=self._from_feed(log, after, end, columns), to=end)

        return self._ask(log, after, to, by_files, by_feed, most=most)

    def rows_of_few_commits(
        self,
        log: str,
        *,
        after: int,
        to: int,
        columns: Sequence[str],
        partition: Mapping[str, str] | None = None,
    ) -> pa.Table | None:
        """Return the rows that were added, as the files of the commits tell; None where they do
        not, or are many. Then the table is to be asked, which may have lost some of them since.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included.
            columns: as `added` takes them.
            partition: the values of partition columns, as text; of any if left out.
        """

        def by_files(files: Sequence[AddedFile], _: int) -> pa.Table | None:
            meant = partition or {}
            if any(not meant.keys() <= file.partition.keys() for file in files):
                return None  # somebody has made the table anew, with other partitions
            read = [file for file in files if meant.items() <= file.partition.items()]
            if sum(file.rows for file in read) > LARGEST:
                return None
            return read_files(read, columns) if read else _no_rows(columns)

        if not 0 <= to - after <= MOST_COMMITS:
            return None
        return self._ask(log, after, to, by_files, lambda: None)

    def few_added(
        self, log: str, *, after: int, to: int, columns: Sequence[str], most: int
    ) -> pa.Table | None:
        """Return all rows that were added; None if they are more than so many, or cannot be read
        any more. Whoever follows a log in memory asks for everything anew then.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included; later than the other.
            columns: as `added` takes them.
            most: rows.
        """
        try:
            found = self.added(log, after=after, to=to, columns=columns, most=most)
        except ChangeFeedGone:
            return None
        return None if found is None or found.to < to else found.rows

    def counts(self, log: str, *, after: int, to: int) -> Mapping[int, int]:
        """Return how many rows each commit has added, in order.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included; later than the other.
        """

        def by_files(files: Sequence[AddedFile], _: int) -> Mapping[int, int]:
            found: Counter[int] = Counter()
            for file in files:
                found[file.version] += file.rows
            return found

        def by_feed() -> Mapping[int, int]:
            table = self._sql(
                f"select {VERSION}, count(*) as rows from {changes(log, after=after, to=to)} "
                f"group by {VERSION} order by {VERSION}"
            )
            return dict(zip(table[VERSION].to_pylist(), table["rows"].to_pylist(), strict=True))

        return self._ask(log, after, to, by_files, by_feed)

    def groups(
        self, log: str, *, after: int, to: int, by: Sequence[str], of: str
    ) -> Sequence[Mapping[str, Any]]:
        """Return groups of the rows that were added.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included; later than the other.
            by: the columns in which the rows of a group agree. Days are counted from 1970, for
                Python knows none after the year 9999.
            of: the column of which each group says the least and the greatest value.

        Returns:
            The values of `by`, and rows (how many), least, greatest.
        """

        def by_files(files: Sequence[AddedFile], _: int) -> pa.Table:
            parts = [_grouped(read_columns(file, (*by, of)), by, of) for file in files]
            return _merged(pa.concat_tables(parts), by) if parts else None

        def by_feed() -> pa.Table:
            names = ", ".join(by)
            return self._sql(
                f"select {names}, count(*) as rows, min({of}) as least, max({of}) as greatest "
                f"from {changes(log, after=after, to=to)} group by {names}"
            )

        found = self._ask(log, after, to, by_files, by_feed)
        if found is None:
            return []
        for place, field in enumerate(found.schema):
            if pa.types.is_date(field.type):
                days = found[field.name].cast(pa.int32())
                found = found.set_column(place, field.name, days)
        rows: Sequence[Mapping[str, Any]] = found.to_pylist()
        return rows

    def may_repeat(self, log: str, *, after: int, to: int, column: str) -> bool:
        """Say whether a value was added twice; False is certain.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included; later than the other.
            column: of texts.
        """

        def by_files(files: Sequence[AddedFile], _: int) -> bool:
            def read() -> Iterator[pa.ChunkedArray]:
                return (read_columns(file, (column,))[column] for file in files)

            return may_repeat(read, sum(file.rows for file in files))

        return self._ask(log, after, to, by_files, lambda: True)

    def relation(self, log: str, *, after: int, to: int, columns: Sequence[str], few: int) -> str:
        """Return what was added, to select from. Few rows are read here: to plan how Spark reads
        them takes longer than most of what is asked of them.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included; later than the other.
            columns: that are selected; `VERSION` is always there. More may be.
            few: rows; of as many, none is read here.

        Returns:
            A relation: SQL, or a temporary view of the session, until another one is asked for.
        """

        def by_files(files: Sequence[AddedFile], _: int) -> str:
            if not 0 < sum(file.rows for file in files) < few:
                return by_feed()
            name = f"{log.rpartition('.')[2]}_rows"
            rows = read_files(files, (*columns, VERSION))
            frame_of(self._spark, rows).createOrReplaceTempView(name)
            return name

        def by_feed() -> str:
            return changes(log, after=after, to=to)

        return self._ask(log, after, to, by_files, by_feed)

    def located(self, log: str, deliveries: pa.Table) -> pa.Table:
        """Return deliveries with where their events lie, as far as the files of their commits tell:
        then their workers can read them, and nothing of them passes Spark.

        Args:
            log: the full name of the event log.
            deliveries: columns of `claims.DELIVERIES`, in any order, which is kept.

        Returns:
            All that was given, with the last columns of `event_files.LOCATED`; null where it is not
            known.
        """
        if FILE in deliveries.column_names:
            return deliveries
        versions = deliveries["arrival"].unique().to_pylist()
        folder = self._readable(log) if len(versions) <= MOST_COMMITS else None
        files: dict[int, Sequence[AddedFile]] = {}
        if folder is not None:
            for version in versions:
                found = added_files(folder, after=version - 1, to=version)
                files[version] = found[0] if found is not None else ()
        if sum(file.rows for of_commit in files.values() for file in of_commit) <= LARGEST:
            try:
                return with_locations(deliveries, files)
            except UnreadableFile as error:  # written anew since, or purged
                logger.info("log_file_unreadable", extra={"file": str(error)})
        return with_locations(deliveries, {})

    def last_number(self, log: str, app_id: str) -> int | None:
        """Return the last number that a writer has used in a log; None if it has used none, or the
        files of the log do not tell.

        Args:
            log: its full name.
            app_id: under which Delta keeps one version per append.
        """
        here = state_here(self._history, log)
        return None if here is None else here[1].numbers.get(app_id)

    def _ask(
        self,
        log: str,
        after: int,
        to: int,
        by_files: Callable[[Sequence[AddedFile], int], T],
        by_feed: Callable[[], T],
        *,
        most: int | None = None,
    ) -> T:
        """Ask the files of commits, and where they do not tell, the change feed. No other place
        makes that choice.

        Args:
            log: its full name.
            after: version, not included.
            to: version, included.
            by_files: is given the files of the first commits that have no more rows than `most`,
                and the last commit that was read.
            by_feed: asks Spark.
            most: rows, any number if None.
        """
        found = self._files(log, after, to, most)
        if found is not None:
            try:
                return by_files(*found)
            except UnreadableFile as error:  # written anew since, or purged
                logger.info("log_file_unreadable", extra={"file": str(error)})
        try:
            return by_feed()
        except Exception as error:
            if is_feed_gone(error):
                raise ChangeFeedGone(table=log, version=after + 1) from error
            raise

    def _files(
        self, log: str, after: int, to: int, most: int | None = None
    ) -> tuple[Sequence[AddedFile], int] | None:
        folder = self._readable(log)
        return None if folder is None else added_files(folder, after=after, to=to, most=most)

    def _readable(self, log: str) -> Path | None:
        """Return where Delta keeps a log of which files can be read; None if that is Spark's."""
        here = state_here(self._history, log)
        return here[0] if here is not None and here[1].is_readable else None

    def _from_feed(
        self, log: str, after: int, to: int, columns: Sequence[str], *, limit: int | None = None
    ) -> pa.Table:
        """Return rows of the change feed, one more than a limit if there are more."""
        asked = ", ".join(name for name in columns if name not in NOWHERE)
        most = "" if limit is None else f" limit {limit + 1}"
        table = self._sql(f"select {asked} from {changes(log, after=after, to=to)}{most}")
        for name in NOWHERE:
            if name in columns:
                nulls = pa.nulls(table.num_rows, LOCATED.field(name).type)
                table = table.append_column(name, nulls)
        return table.select(list(columns))

    def _sql(self, text: str) -> pa.Table:
        return self._spark.sql(text).toArrow()


def changes(log: str, *, after: int, to: int) -> str:
    """Return what was appended to a log between two versions, to select from.

    Args:
        log: its full name.
        after: version, not included.
        to: version, included; later than the other.
    """
    return f"table_changes('{log}', {after + 1}, {to}) where _change_type = 'insert'"


def _exceed(rows: int, most: int | None) -> bool:
    return most is not None and rows > max(most, LARGEST)


def _no_rows(columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.nulls(0) for name in columns})


def _grouped(rows: pa.Table, by: Sequence[str], of: str) -> pa.Table:
    found = rows.group_by(list(by)).aggregate([([], "count_all"), (of, "min"), (of, "max")])
    return found.select([*by, "count_all", f"{of}_min", f"{of}_max"]).rename_columns(
        [*by, "rows", "least", "greatest"]
    )


def _merged(groups: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return groups of several files as one."""
    kinds = [("rows", "sum"), ("least", "min"), ("greatest", "max")]
    found = groups.group_by(list(by)).aggregate(kinds)
    return found.select([*by, "rows_sum", "least_min", "greatest_max"]).rename_columns(
        [*by, "rows", "least", "greatest"]
    )
