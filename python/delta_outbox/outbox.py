"""The store: append events, retrieve and claim what is eligible, end claims."""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_outbox.appending import AppendReport, append_events
from delta_outbox.claims import (
    DELIVERIES,
    Claim,
    claim_rows,
    decide_endings,
    ending_rows,
    make_claim,
    new_claim_id,
)
from delta_outbox.clock import Clock, SystemClock
from delta_outbox.errors import SequenceTaken
from delta_outbox.home import Home
from delta_outbox.lifecycle import Ending, EndOfClaim, LeaseExpired
from delta_outbox.log import TransitionLog
from delta_outbox.policies import Check, Policies
from delta_outbox.policy import PolicySet
from delta_outbox.projection import Projection, own_session
from delta_outbox.settings import Settings
from delta_outbox.statements import Statements
from delta_outbox.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_outbox.rejection import Rows

logger = logging.getLogger(__name__)

WORKERS: Final[set[str]] = set()
"""The workers of this process. In a local home every other one is gone: the lock proves it."""

ATTEMPTS: Final = 20  # appends that may be lost to other writers before the caller is told


@dataclass(frozen=True, kw_only=True)
class Retrieved:
    """What is takeable, and the position of the log at which that is true.

    Args:
        deliveries: columns of `claims.DELIVERIES`, in the order in which they are taken.
        sequence: the position; a claim that follows must be the next append.
    """

    deliveries: pa.Table
    sequence: int


class Outbox:
    """An outbox on Delta.

    Args:
        spark: the session; the store works in one of its own on the same Spark.
        tables: the names of the relations.
        settings: the settings.
        statements: the SQL that dbt compiled.
        clock: the time.
        home: of a local outbox; its lock proves that workers of other processes are gone.
        worker_id: who claims; unique per instance.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        tables: Tables | None = None,
        settings: Settings | None = None,
        statements: Statements,
        clock: Clock | None = None,
        home: Home | None = None,
        worker_id: str | None = None,
    ) -> None:
        """Open sessions and read nothing yet."""
        self.spark = own_session(spark)
        self.tables = tables or Tables()
        self.settings = settings or Settings()
        self.statements = statements
        self.clock: Clock = clock or SystemClock()
        self.home = home
        self.worker_id = worker_id or f"worker-{uuid.uuid4().hex[:12]}"
        self.projection = Projection(self.spark, self.tables, statements)
        self.log = TransitionLog(self.spark, self.tables, relay_id=self.worker_id)
        self._policy_source = Policies(
            self.spark,
            self.tables,
            settings=self.settings,
            clock=self.clock,
            worker_id=self.worker_id,
        )
        self._policies: PolicySet | None = None
        self._claimed_at: dict[str, int] = {}  # claim -> its sequence, for `end`
        WORKERS.add(self.worker_id)

    # --- producing -------------------------------------------------------------------------

    def append(
        self, events: pa.Table | DataFrame, *, lines: Sequence[int] | Rows | None = None
    ) -> AppendReport:
        """Append events, all or nothing, and say what is wrong with each that is rejected.

        Args:
            events: columns of outbox_events that a producer gives (event_id, event_type, payload;
                the others may be left out); a row per event. It is held in memory as Arrow.
            lines: what to call each row in a rejection; counted from 1 if left out.

        Returns:
            How many rows were appended and how many were there already, or the rejections.
        """
        table = events if isinstance(events, pa.Table) else events.toArrow()
        return append_events(
            self.spark,
            self.tables,
            table,
            settings=self.settings.append,
            now=self.clock.now(),
            lines=lines,
        )

    def refresh(
        self, *, planned_by: str = "outbox", rebuild: bool = False, touch: bool = False
    ) -> int:
        """Bring the projection up to everything that was committed before this call.

        Args:
            planned_by: who asks, for the record.
            rebuild: derive everything anew from the logs.
            touch: move `outbox_freshness.refreshed_at` although there is nothing new.

        Returns:
            The number of the plan that the projection stands at.
        """
        return self.projection.refresh(planned_by=planned_by, rebuild=rebuild, touch=touch)

    # --- processing ------------------------------------------------------------------------

    def policies(self) -> PolicySet:
        """Return the delivery policies in force; broken rows keep the last good ones.

        Cheap if nothing has changed: call it before every batch.

        Raises:
            BadPolicy: the policies break a rule and there are no earlier ones.
        """
        self._policies = self._policy_source.in_force()
        return self._policies

    def watch_policies(self, check: Check) -> PolicySet:
        """Name what new policies must pass before they are put into force; return those in force.

        Args:
            check: raises an OutboxError if this worker cannot serve them, for example because of
                a destination; then the former ones stay, and it is asked again after a while.

        Raises:
            OutboxError: the first ones do not pass.
        """
        self._policies = self._policy_source.watch(check)
        return self._policies

    def policy_status(self) -> dict[str, str | None]:
        """Return `version`, the policies in force, and `problem`, why newer rows are not."""
        return self._policy_source.status()

    def retrieve(self, limit: int) -> Retrieved:
        """Return what is takeable now, never more than a limit, in the order of the outbox.

        Args:
            limit: deliveries, at least 0.
        """
        self.log.catch_up()
        picture, _ = self.projection.picture()
        return self.retrieve_from(picture, limit)

    def retrieve_from(self, picture: DataFrame, limit: int) -> Retrieved:
        """Return what is takeable in a picture, never more than a limit.

        Args:
            picture: the open deliveries, as `Projection.picture` returns them.
            limit: deliveries, at least 0.
        """
        picture.createOrReplaceTempView("outbox_open_deliveries")
        text = self.statements.fill(
            "eligible", deliveries="outbox_open_deliveries", now=self.now_literal()
        )
        columns = [name for name in DELIVERIES.names if name != "started_at"]
        table = self.spark.sql(
            f"select {', '.join(columns)}, "
            "greatest(appended_at, scheduled_at, replayed_at) as started_at "
            f"from ({text}) order by position limit {int(limit)}"
        ).toArrow()
        return Retrieved(
            deliveries=table.select(DELIVERIES.names).cast(DELIVERIES), sequence=self.log.sequence
        )

    def claim(self, limit: int) -> Claim | None:
        """Take what is eligible, never more than a limit; None if there is nothing.

        Args:
            limit: events, at least 1.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        for _ in range(ATTEMPTS):
            found = self.retrieve(limit)
            if not found.deliveries.num_rows:
                return None
            claim = self.new_claim(found.deliveries)
            try:
                self.log.append(claim_rows(claim))
            except SequenceTaken:
                self.log.catch_up()
                continue
            self._claimed_at[claim.claim_id] = self.log.sequence
            return claim
        raise SequenceTaken(writer=self.log.app_id, number=self.log.sequence + 1)

    def end(self, claim: Claim, results: Sequence[EndOfClaim]) -> list[Ending]:
        """End a claim by what became of its deliveries.

        An ending counts only for a delivery that is still under this claim: where somebody else
        has ended it, by its expired lease, the result comes too late and is left out.

        Args:
            claim: as `claim` returned it.
            results: one per delivery, in the claim's order.

        Returns:
            The endings that were decided, one per delivery.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        endings = self.decide(claim, results)
        rows = ending_rows(claim, endings, now=self.clock.now())
        # The log may have been looked at since the claim: what came in between counts as well.
        since = self._claimed_at.get(claim.claim_id, self.log.sequence)
        self.append_endings(self.still_live(rows, since=since))
        self._claimed_at.pop(claim.claim_id, None)
        return endings

    def release_expired_claims(self) -> int:
        """End the claims whose worker is gone, and return how many deliveries that sets free.

        What proves it: the lock of the local home, or a lease that is over by more than
        `clock_skew_seconds`. A relay also observes leases by its own clock.
        """
        self.log.catch_up()
        picture, _ = self.projection.picture()
        freed = 0
        for row in self.live_claims(picture):
            if self.is_gone(row["claimed_by"]) or self.is_long_over(row["lease_expires_at"]):
                freed += self.expire(picture, row["claim_id"])
        return freed

    # --- parts that the relay puts together -------------------------------------------------

    def new_claim(self, deliveries: pa.Table) -> Claim:
        """Make a claim of deliveries; nothing is written.

        Args:
            deliveries: columns of `claims.DELIVERIES`.
        """
        return make_claim(
            deliveries,
            policies=self._policies or self.policies(),
            now=self.clock.now(),
            claim_id=new_claim_id(),
        )

    def decide(self, claim: Claim, results: Sequence[EndOfClaim]) -> list[Ending]:
        """Decide the endings of a claim; nothing is written.

        Args:
            claim: the claim.
            results: one per delivery.
        """
        return decide_endings(claim, results, now=self.clock.now(), jitter=random.random)

    def append_endings(self, rows: pa.Table) -> None:
        """Append endings; those whose claim somebody else has ended are void and left out.

        Args:
            rows: as `claims.ending_rows` makes them.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        for _ in range(ATTEMPTS):
            if not rows.num_rows:
                return
            try:
                self.log.append(rows)
            except SequenceTaken:
                rows = self.still_live(rows)
                continue
            return
        raise SequenceTaken(writer=self.log.app_id, number=self.log.sequence + 1)

    def still_live(self, rows: pa.Table, *, since: int | None = None) -> pa.Table:
        """Move to the end of the log and return the endings whose claims nobody ended meanwhile.

        Args:
            rows: endings that were decided at the position that was known.
            since: an earlier position, at which the claims were certainly live.
        """
        news = self.log.rows_after(self.log.sequence if since is None else since)
        if news.num_rows:
            self.log.sequence = max(news["sequence"].to_pylist())
        ended = {
            (row["event_id"], row["arrival"], row["destination"])
            for row in news.to_pylist()
            if row["from_state"] == "CLAIMED"
        }
        identity = zip(
            rows["event_id"].to_pylist(),
            rows["arrival"].to_pylist(),
            rows["destination"].to_pylist(),
            strict=True,
        )
        kept = [key not in ended for key in identity]
        if not all(kept):
            logger.warning("endings_void", extra={"count": kept.count(False)})
        return rows.filter(pa.array(kept, pa.bool_()))

    def live_claims(self, picture: DataFrame) -> list[Mapping[str, object]]:
        """Return the claims in a picture: claim_id, claimed_by, claimed_at, lease_expires_at.

        Args:
            picture: the open deliveries.
        """
        picture.createOrReplaceTempView("outbox_open_deliveries")
        rows: list[Mapping[str, object]] = (
            self.spark.sql(
                "select claim_id, claimed_by, min(claimed_at) as claimed_at, "
                "max(lease_expires_at) as lease_expires_at, count(*) as deliveries "
                "from outbox_open_deliveries where state = 'CLAIMED' "
                "group by claim_id, claimed_by"
            )
            .toArrow()
            .to_pylist()
        )
        return rows

    def is_gone(self, worker_id: object) -> bool:
        """Say whether it is proven that a worker has ended.

        Args:
            worker_id: who claimed.
        """
        return self.home is not None and worker_id not in WORKERS and worker_id != "todo"

    def is_long_over(self, lease_expires_at: object) -> bool:
        """Say whether a lease is over by more than clocks may differ.

        Args:
            lease_expires_at: end of the lease.
        """
        assert isinstance(lease_expires_at, datetime)
        skew = timedelta(seconds=self.settings.relay.clock_skew_seconds)
        return lease_expires_at.astimezone(UTC) + skew < self.clock.now()

    def expire(self, picture: DataFrame, claim_id: object) -> int:
        """End a claim because its lease is over; returns how many deliveries that sets free.

        Args:
            picture: the open deliveries at the position of the log that is known.
            claim_id: the claim, from `live_claims`.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        from pyspark.sql import functions as sf

        columns = [name for name in DELIVERIES.names if name != "started_at"]
        held = (
            picture.where(sf.col("claim_id") == sf.lit(str(claim_id)))
            .selectExpr(
                *columns,
                "greatest(appended_at, scheduled_at, replayed_at) as started_at",
                "claim_size",
            )
            .toArrow()
        )
        if not held.num_rows:
            return 0
        sizes = held["claim_size"].to_pylist()
        held = held.select(DELIVERIES.names).cast(DELIVERIES)
        # The picture shows the counters after the claim; a claim is made of those before it.
        before = pa.array([value - 1 for value in held["attempts"].to_pylist()], pa.int32())
        held = held.set_column(held.schema.get_field_index("attempts"), "attempts", before)
        policies = self._policies or self.policies()
        claim = Claim(
            claim_id=str(claim_id),
            deliveries=held,
            policies=[policies.match(name) for name in held["event_type"].to_pylist()],
            policy_version=policies.version,
            claimed_at=self.clock.now(),
        )
        endings = decide_endings(
            claim,
            [LeaseExpired()] * len(claim),
            now=self.clock.now(),
            jitter=random.random,
            claim_size=sizes[0],
        )
        self.append_endings(ending_rows(claim, endings, now=self.clock.now(), claim_size=sizes[0]))
        logger.warning("claim_expired", extra={"claim_id": claim_id, "deliveries": len(claim)})
        return len(claim)

    def now_literal(self) -> str:
        """Return the current instant as an SQL literal."""
        return f"timestamp_micros({int(self.clock.now().timestamp() * 1_000_000)})"
