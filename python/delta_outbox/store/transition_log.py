"""The transition log of one lane: append at an expected sequence, read back, or lose.

The rule that makes everything safe: whoever appends names the position that it has seen. Delta
commits one writer per (appId, version) and raises for those that raced; a version that was used
before is skipped without a word, so nothing is believed before it has been read back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.errors import LaneClosed, LogRewound, SequenceTaken
from delta_outbox.core.failpoints import reach
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.tables import TRANSITIONS, Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.delta.log_writer import ATTEMPTS, LogWriter
from delta_outbox.lifecycle.claims import still_live

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPENDS_REMEMBERED: Final = 1000
_COLUMNS: Final = (
    *("sequence", "event_id", "arrival", "destination", "lifecycle"),
    *("from_state", "to_state", "claim_id", "relay_id"),
)


class TransitionLog:
    """The log of one lane as one relay sees it.

    Args:
        spark: the session to write with.
        tables: the names of the relations.
        relay_id: the writer; unique per relay process, on every row that it appends.
        epoch: the epoch of the lanes.
        lane: the lane.
        is_ending: asked when a number is used up without rows: whether the epoch has ended, or is
            just being ended.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        *,
        relay_id: str,
        epoch: int = 0,
        lane: int = 0,
        is_ending: Callable[[int], bool] = lambda _: False,
    ) -> None:
        """Know nothing yet; `catch_up` reads the position."""
        self._spark = spark
        self._table = tables.transitions
        self._relay_id = relay_id
        self.epoch = epoch
        self.lane = lane
        self._is_ending = is_ending
        self.is_over = False  # the epoch has ended, and with it every claim that was made in it
        self.sequence = 0
        # Rows of others up to this position were skipped: an append that wins says nothing about
        # them.
        self.passed = 0
        self.versions: deque[int] = deque(maxlen=APPENDS_REMEMBERED)  # the commits of our appends
        # (position, commit): whatever follows the position was committed later.
        self._commits: deque[tuple[int, int]] = deque(maxlen=APPENDS_REMEMBERED)

    @property
    def version(self) -> int | None:
        """The commit of our latest append, None if there was none."""
        return self.versions[-1] if self.versions else None

    @property
    def app_id(self) -> str:
        """The writer id under which Delta keeps one version per append."""
        return f"outbox/{self.epoch}/{self.lane}"

    def catch_up(self, version: int | None = None) -> None:
        """Move the known position to the end of the log.

        Args:
            version: the commit of the log that a read view was, or will be, made of. Its end counts
                then: what came later is not in the read view, and must make our append lose.
        """
        if version is not None and version == self.version:
            return  # ours, and nobody was here since
        version = self.newest_here() if version is None else version
        if version is not None and self.follow(version):
            return
        log = self._table if version is None else f"{self._table} version as of {version}"
        row = self._spark.sql(
            f"select max(sequence) as sequence from {log} "
            f"where epoch = {self.epoch} and lane = {self.lane} and sequence >= {self.sequence}"
        ).first()
        found = row["sequence"] if row is not None else None
        self.move(found or self.sequence, version=version)

    def follow(self, version: int) -> bool:
        """Move the known position as `catch_up` does, by the files of what was committed since;
        False if only Spark can tell.

        Args:
            version: a commit of the log; earlier than what is known, it shows nothing more.
        """
        known = self._commit_before(self.sequence)
        if known is not None and version <= known:
            return True
        found = self._by_files(self.sequence, to=version, columns=["sequence"])
        if found is None:
            return False
        self.move(pc.max(found["sequence"]).as_py() or self.sequence, version=version)
        return True

    def move(self, sequence: int, *, version: int | None = None) -> None:
        """Go to a later position, past rows of others; an earlier one is passed over.

        Args:
            sequence: of the last append that is known.
            version: a commit of the log that nothing behind that position came before; None if
                none is known.
        """
        if version is not None:
            self._commits.append((sequence, version))
        if sequence > self.sequence:
            self.sequence = self.passed = sequence

    def rows_after(
        self, sequence: int, *, of: Collection[str] | None = None, limit: int | None = None
    ) -> pa.Table:
        """Return what was appended after a position, in order.

        How much that is nobody knows: others may have been at work for hours.

        Args:
            sequence: the position that is known.
            of: identities of the claims that are asked about; None for all rows.
            limit: how many rows at most; None for all.

        Returns:
            Columns sequence, event_id, arrival, destination, lifecycle, from_state, to_state,
            claim_id, relay_id.
        """
        newest = self.newest_here()
        found = None if newest is None else self._by_files(sequence, to=newest, columns=_COLUMNS)
        if found is None:
            return self._asked(sequence, of, limit)
        if of is not None:
            found = found.filter(pc.is_in(found["claim_id"], pa.array(of, pa.string())))
        return found.slice(0, limit)

    def _asked(self, sequence: int, of: Collection[str] | None, limit: int | None) -> pa.Table:
        from pyspark.sql import functions as sf

        found = self._spark.sql(
            f"select {', '.join(_COLUMNS)} from {self._table} where epoch = {self.epoch} "
            f"and lane = {self.lane} and sequence > {sequence}"
        )
        if of is not None:
            found = found.where(sf.col("claim_id").isin(*of))
        found = found.orderBy("sequence")
        return (found if limit is None else found.limit(limit)).toArrow()

    def _by_files(self, sequence: int, *, to: int, columns: Sequence[str]) -> pa.Table | None:
        """Return what was appended after a position, in order; None if only Spark can tell.

        Args:
            sequence: the position, not included.
            to: a commit of the log; what came later is left out.
            columns: of `TRANSITIONS`, `sequence` among them.
        """
        after = self._commit_before(sequence)
        if after is None:
            return None
        schema = pa.schema([TRANSITIONS.field(name) for name in (*columns, "epoch")])
        found = LogReader(self._spark).rows_of_few_commits(
            self._table,
            after=after,
            to=to,
            columns=schema.names,
            partition={"lane": str(self.lane)},
        )
        if found is None:
            return None
        found = found.cast(schema)
        is_later = pc.and_(
            pc.equal(found["epoch"], self.epoch), pc.greater(found["sequence"], sequence)
        )
        return found.filter(is_later).drop_columns("epoch").sort_by("sequence")

    def _commit_before(self, sequence: int) -> int | None:
        """Return the latest commit that is known to be before all that follows a position."""
        return max((commit for at, commit in self._commits if at <= sequence), default=None)

    def newest_here(self) -> int | None:
        """Return the newest commit of the log; None if that is not on this machine."""
        commit = CommitHistory(self._spark).newest_here(self._table)
        return None if commit is None else commit.version

    def position_of(self, claim_id: str, *, claimed_at: datetime) -> int | None:
        """Return the position at which a claim was made, None if it never was.

        Args:
            claim_id: the claim.
            claimed_at: when it was decided; nothing older is read.
        """
        from pyspark.sql import functions as sf

        row = (
            self._spark.table(self._table)
            .where(
                f"epoch = {self.epoch} and lane = {self.lane} and to_state = 'CLAIMED' "
                f"and occurred_at >= {instant_literal(claimed_at)}"
            )
            # Not as text: whoever calls us made it up. And Spark 4.1 binds no parameters of a query
            # that Delta's parser has read (UNBOUND_SQL_PARAMETER).
            .where(sf.col("claim_id") == sf.lit(claim_id))
            .agg(sf.min("sequence").alias("sequence"))
            .first()
        )
        return None if row is None or row["sequence"] is None else int(row["sequence"])

    def append(self, rows: pa.Table) -> None:
        """Append rows at the next sequence and read back that it was this append.

        Args:
            rows: columns of `TRANSITIONS` but for epoch, lane and sequence, which are filled in
                here, as is relay_id where it is null; at most one row per delivery.

        Raises:
            SequenceTaken: somebody else appended there first; nothing was written.
            LaneClosed: nobody can append there any more, for the epoch ends; nothing was written.
            LogRewound: the number counts as used and nobody's rows carry it.
        """
        number = self.sequence + 1
        table = self._numbered(rows, number)
        reach("transitions.before")
        version = self._commit(table, number)
        if version is not None:
            self.sequence = number
            self.versions.append(version)
            self._commits.append((number, version))
            reach("transitions.after")
            return
        if self.rows_after(number - 1, limit=1).num_rows:
            raise SequenceTaken(writer=self.app_id, number=number)
        if self._is_ending(self.epoch):
            raise LaneClosed(writer=self.app_id, number=number, lane=self.lane)
        raise LogRewound(table=self._table, writer=self.app_id, number=number)

    def close(self) -> bool:
        """Use up what follows the position by appends without rows, for good.

        Whoever knows the lane up to its end loses from then on, as against any other append. Where
        the table was rewound, numbers after its end are used already; one that knew it before that
        would go on behind them, so the first free one is looked for.

        Returns:
            Whether it is closed; False if somebody has appended after the position, or just now.
        """
        number, step = self.sequence + 1, 1
        while True:
            try:
                version = self._commit(TRANSITIONS.empty_table(), number)
            except SequenceTaken:
                return False
            if version is not None:
                return True
            if self.rows_after(self.sequence, limit=1).num_rows:
                return False
            number, step = number + step, step * 2

    def _commit(self, table: pa.Table, number: int) -> int | None:
        """Commit an append, and return its version; None if the number was used before."""
        writer = LogWriter(self._spark, app_id=self.app_id, committed="transitions.committed")
        return writer.append(self._table, table, number)

    def append_until_won(self, rows: pa.Table, again: Callable[[pa.Table], pa.Table]) -> int:
        """Append rows, deciding anew after each race that was lost.

        Args:
            rows: as `append` takes them; none is fine.
            again: is given the rows that lost and returns those that still hold, with the
                position moved to the end of the log.

        Returns:
            How many rows were appended.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
            LaneClosed: what still holds can no longer be appended here.
        """
        for _ in range(ATTEMPTS):
            if not rows.num_rows:
                return 0
            try:
                self.append(rows)
            except SequenceTaken as taken:
                rows = again(rows)
                if rows.num_rows and isinstance(taken, LaneClosed):
                    raise
                continue
            return int(rows.num_rows)
        raise SequenceTaken(writer=self.app_id, number=self.sequence + 1)

    def append_endings(self, rows: pa.Table) -> None:
        """Append endings; those whose claim somebody else has ended are void and left out.

        Args:
            rows: as `claims.ending_rows` makes them.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        self.append_until_won(rows, self.still_live)

    def still_live(self, endings: pa.Table, *, since: int | None = None) -> pa.Table:
        """Move to the end of the log, and return the endings whose claims nobody has ended.

        Args:
            endings: rows that were decided at the position that was known.
            since: an earlier position, at which their claims were made.
        """
        if self.is_over:
            return endings.slice(0, 0)
        after = self.sequence if since is None else since
        self.catch_up()
        return still_live(endings, self.rows_after(after, of=_claims(endings)))

    def without_void(self, parts: Sequence[tuple[int, pa.Table]]) -> list[pa.Table]:
        """Return the endings whose claim nobody else has ended, as far as the position reaches.

        An append that succeeds proves nothing of what came before the known position: a poll may
        have moved that past the end of a claim.

        Args:
            parts: the position at which a claim was made, and its endings as `claims.ending_rows`
                makes them.

        Returns:
            The endings of each part that still count.
        """
        if self.is_over:
            return [rows.slice(0, 0) for _, rows in parts]
        passed = [(claimed, rows) for claimed, rows in parts if claimed < self.passed]
        if not passed:
            return [rows for _, rows in parts]
        claims = {one for _, rows in passed for one in _claims(rows)}
        ended = self.rows_after(min(claimed for claimed, _ in passed), of=claims)
        return [still_live(rows, ended) for _, rows in parts]

    def _numbered(self, rows: pa.Table, number: int) -> pa.Table:
        """Fill in the position and the writer, and put the columns in order."""
        count = rows.num_rows
        given = {
            "epoch": pa.repeat(pa.scalar(self.epoch, pa.int32()), count),
            "lane": pa.repeat(pa.scalar(self.lane, pa.int32()), count),
            "sequence": pa.repeat(pa.scalar(number, pa.int64()), count),
        }
        columns = []
        for field in TRANSITIONS:
            if field.name in given:
                columns.append(given[field.name])
            elif field.name in rows.column_names:
                columns.append(rows[field.name].cast(field.type))
            else:
                columns.append(pa.nulls(count, field.type))
            if field.name == "relay_id":
                columns[-1] = pc.fill_null(columns[-1], self._relay_id)
        return pa.Table.from_arrays(columns, schema=TRANSITIONS)


def _claims(rows: pa.Table) -> list[str]:
    found: list[str] = pc.unique(rows["claim_id"]).to_pylist()
    return found
