"""Decides whose claims may be ended, because nobody works on them any more, and ends them."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import Clock
from delta_outbox.core.literals import instant_literal
from delta_outbox.lifecycle.claims import (
    COLUMNS,
    DELIVERIES,
    OPEN_ITEM,
    Claim,
    decide_endings,
    ending_rows,
    held_claim,
    joined,
    left_after,
)
from delta_outbox.lifecycle.endings import EndOfClaim, killed_text
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.store.lane_logs import LaneLogs
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.unknown_results import UnknownResults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


logger = logging.getLogger(__name__)

WORKERS: Final[set[str]] = set()
"""The workers of this process. Where it has the home for itself, every other one is gone."""

ITEMS_AT_ONCE: Final = 1000  # ended per poll

HELD: Final = pa.schema(
    [
        *DELIVERIES,
        ("claim_id", pa.string()),
        ("claim_size", pa.int32()),
        ("claimed_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""A delivery under a claim, as the read view shows it."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What ending claims has come to.

    Args:
        deliveries: that were under them and no longer are, as `ExpiredClaims.held` returns them.
        left: what a window may need of these, as `left_after` returns it.
    """

    deliveries: pa.Table
    left: pa.Table


class ExpiredClaims:
    """Ends claims of workers that are gone, those whose lease is over, and items that are over.

    Args:
        spark: the session.
        logs: where it appends.
        unknown_results: asks destinations what they got.
        policies: returns the delivery policies in force.
        clock: the time.
        worker_id: who it works for.
        exclusive: this process has the home's lock, so workers of other processes are gone.
        clock_skew_seconds: by how much clocks may differ.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        logs: LaneLogs,
        unknown_results: UnknownResults,
        policies: Callable[[], PolicySet],
        clock: Clock,
        worker_id: str,
        exclusive: bool,
        clock_skew_seconds: float,
    ) -> None:
        self._spark = spark
        self._logs = logs
        self._unknown_results = unknown_results
        self._policies = policies
        self._clock = clock
        self._worker_id = worker_id
        self._exclusive = exclusive
        self._skew = timedelta(seconds=clock_skew_seconds)
        self.has_unresolved = False  # whether the last of them were left as they are, in part

    def is_over(self, claim: Mapping[str, object]) -> bool:
        """Say whether it is proven that nobody works on a claim.

        Args:
            claim: from `overview`.
        """
        return self.is_gone(claim["claimed_by"]) or self.is_long_over(claim["lease_expires_at"])

    def choose(
        self,
        claims: Iterable[Mapping[str, object]],
        leases: LeaseWatch,
        *,
        in_flight: Collection[str] | None,
    ) -> list[str]:
        """Return the ids of the claims that may be ended: ours that are not in flight, those of
        which it is proven that nobody works on them, and those whose lease was seen to run out.

        Args:
            claims: from `overview`.
            leases: has observed them.
            in_flight: our own that are still worked on; None if that is not known, so that ours end
                like those of others.
        """
        found = []
        for claim in claims:
            claim_id, worker = str(claim["claim_id"]), claim["claimed_by"]
            if in_flight is not None and claim_id in in_flight:
                continue
            if (
                (in_flight is not None and worker == self._worker_id)
                or self.is_over(claim)
                or leases.is_over(claim_id)
            ):
                found.append(claim_id)
        return found

    def is_gone(self, worker_id: object) -> bool:
        """Say whether it is proven that a worker has ended.

        Args:
            worker_id: who claimed.
        """
        return self._exclusive and worker_id not in WORKERS

    @property
    def is_alone(self) -> bool:
        """Say whether it is proven that there is no other worker."""
        return self._exclusive and {self._worker_id} == WORKERS

    def is_long_over(self, lease_expires_at: object) -> bool:
        """Say whether a lease is over by more than clocks may differ.

        Args:
            lease_expires_at: end of the lease.
        """
        assert isinstance(lease_expires_at, datetime)
        return lease_expires_at.astimezone(UTC) < self._clock.now() - self._skew

    def expire(
        self,
        read_view: DataFrame,
        claim_ids: Collection[str],
        *,
        asked: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> int:
        """End claims because their leases are over; returns how many deliveries that requeues.

        What a destination knows that it got is Delivered; what cannot be resolved stays claimed.

        Args:
            read_view: the open deliveries at the position of the log that is known.
            claim_ids: the claims, from `overview`.
            asked: of claims that an operator wants ended: actor and command_id.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        ended = self.end(self.held(read_view, claim_ids), asked=asked)
        return int(ended.deliveries.num_rows)

    def held(self, read_view: DataFrame, claim_ids: Collection[str]) -> pa.Table:
        """Return the deliveries under some claims.

        Args:
            read_view: the open deliveries.
            claim_ids: the claims, from `overview`.

        Returns:
            Columns of `claims.DELIVERIES`, claim_id, claim_size and claimed_at, in no order.
        """
        from pyspark.sql import functions as sf

        if not claim_ids:
            return HELD.empty_table()
        read_view.where(sf.col("claim_id").isin(*claim_ids)).createOrReplaceTempView(
            "outbox_held_deliveries"
        )
        return (
            self._spark.sql(
                f"select {COLUMNS}, claim_id, claim_size, claimed_at from outbox_held_deliveries"
            )
            .toArrow()
            .cast(HELD)
        )

    def end(self, held: pa.Table, *, asked: Mapping[str, Mapping[str, Any]] | None = None) -> Ended:
        """End claims because their leases are over, as `expire` does.

        Args:
            held: their deliveries, as `held` returns them.
            asked: as `expire` takes it.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        held, results, self.has_unresolved = self._unknown_results.of_held(held)
        rows, left = [], [DELIVERIES.empty_table()]
        for claim_id in held["claim_id"].unique().to_pylist():
            request = (asked or {}).get(claim_id, {})
            of_claim = pc.equal(held["claim_id"], claim_id)
            its, ends = held.filter(of_claim), list(compress(results, of_claim.to_pylist()))
            claim, ended = self._expired(its, claim_id, ends, **request)
            rows.append(ended)
            left.append(left_after(claim.deliveries, ended, self._policies()))
            logger.warning("claim_expired", extra={"claim_id": claim_id, "deliveries": len(its)})
        if rows:
            self._logs.append_endings(pa.concat_tables(rows, promote_options="default"))
        return Ended(deliveries=held, left=joined(*left))

    def end_items(self, read_view: DataFrame, *, answered_to: datetime | None = None) -> int:
        """End items that an operator has killed, and items that are over without an answer; returns
        how many. There may be more.

        An answer that was given in time counts, also if nobody was there to apply it. So an item is
        over once its end lies before an instant by whose commands all have been applied: an answer
        that was committed later is late.

        Args:
            read_view: the open deliveries at the position of the log that is known.
            answered_to: such an instant; if left out, only killed items end.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        is_over = "kill_command_id is not null"
        if answered_to is not None:
            is_over += f" or lease_expires_at <= {instant_literal(answered_to)}"
        found = (
            read_view.where(f"{OPEN_ITEM} and ({is_over})")
            .selectExpr(*_OF_ITEMS)
            .limit(ITEMS_AT_ONCE)
            .toArrow()
        )
        if found.num_rows:
            now = self._clock.now()
            rows = [
                _end_of_item(**row)
                | {"occurred_at": now, "policy_version": self._policies().version}
                for row in found.to_pylist()
            ]
            self._logs.append_endings(pa.Table.from_pylist(rows))
            logger.info("items_ended", extra={"deliveries": found.num_rows})
        return int(found.num_rows)

    def _expired(
        self,
        held: pa.Table,
        claim_id: str,
        results: Sequence[EndOfClaim],
        *,
        actor: str | None = None,
        command_id: str | None = None,
    ) -> tuple[Claim, pa.Table]:
        """Return a claim whose lease is over, and the transitions that end it."""
        now = self._clock.now()
        size = held["claim_size"][0].as_py()
        claim = held_claim(
            held.select(DELIVERIES.names),
            claim_id=claim_id,
            policies=self._policies(),
            now=now,
        )
        endings = decide_endings(
            claim,
            results,
            now=now,
            jitter=random.random,
            claim_size=size,
        )
        by_request = [replace(one, actor=actor, command_id=command_id) for one in endings]
        return claim, ending_rows(claim, by_request, now=now, claim_size=size)


_OF_ITEMS: Final = (
    *("event_id", "arrival", "destination", "lifecycle", "ordering_key", "attempts as attempt"),
    *("publish_attempts", "crashes", "suspect", "claim_id"),
    *("kill_actor as killed_by", "kill_reason as killed_for", "kill_command_id as command_id"),
)


def _end_of_item(
    *, killed_by: str | None, killed_for: str | None, command_id: str | None, **item: object
) -> dict[str, object]:
    """Return the transition that ends the claim of an item: DEAD by an operator, or PENDING, for a
    relay that runs its workflow to end it as expired.
    """
    is_killed = command_id is not None
    return item | {
        "from_state": State.CLAIMED,
        "to_state": State.DEAD if is_killed else State.PENDING,
        "reason": Reason.OPERATOR if is_killed else Reason.LEASE_EXPIRED,
        "claim_size": 1,
        "error": killed_text(killed_by, killed_for) if is_killed else None,
        "actor": killed_by,
        "command_id": command_id,
    }
