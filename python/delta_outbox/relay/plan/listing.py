"""Lists what is open for the window of a relay, from a read view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.errors import LaneClosed
from delta_outbox.lifecycle.claims import in_order, joined, without
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.backlog import last_tried
from delta_outbox.relay.plan.lane_share import LaneShare
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.open_deliveries import Overview
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEVER: Final = float("inf")


@dataclass(kw_only=True)
class Opened:
    """A read view, and how much is open in it.

    Args:
        versions: of the logs that it shows.
        everything: the open deliveries of all lanes.
        ours: those of our lanes.
        found: how much that is, due when, under which claims.
        counts: what `OpenDeliveries.by_commit` says of ours, if that was asked.
    """

    versions: Mapping[str, int]
    everything: DataFrame
    ours: DataFrame
    found: Overview
    counts: pa.Table | None = None


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What goes into the window.

    Args:
        rows: in order: columns of `claims.DELIVERIES`, and of `BLOCKS` where some only block.
        reached: version of the event log. Up to there this is all that is open, but for what is due
            later; behind it nothing has been tried. None if it is only the first of it.
        seconds: after which it has to be listed again, whatever happens.
    """

    rows: pa.Table
    reached: int | None
    seconds: float = NEVER


class Listing:
    """Lists what is open for one relay.

    Args:
        outbox: the store.
        isolation: what each destination may be asked.
        share: which lanes are its own.
        leases: of the claims of others.
        batch_size: deliveries per claim.
    """

    def __init__(
        self,
        outbox: Store,
        isolation: Isolation,
        share: LaneShare,
        leases: LeaseWatch,
        *,
        batch_size: int,
    ) -> None:
        self._outbox = outbox
        self._isolation = isolation
        self._share = share
        self._leases = leases
        self._batch_size = batch_size
        self.is_unresolved = False
        """Whether claims that are over have to stay as they are for now."""

    def open(self, latest: Mapping[str, int], *, since: float | None = None) -> Opened:
        """Return what is open now.

        Args:
            latest: version of each log.
            since: monotonic seconds at which the log was first seen as it is now.
        """
        everything = self._outbox.read_view(latest)
        ours = self._share.of(everything)
        found = self._outbox.deliveries.overview(ours)
        self._leases.observe(found.claims, since=since)
        return Opened(versions=dict(latest), everything=everything, ours=ours, found=found)

    def end_claims(self, opened: Opened, *, in_flight: Set[str]) -> int:
        """End claims whose worker is gone or whose lease we have seen run out; return how many
        transitions that made.

        Args:
            opened: what is open.
            in_flight: our own claims that are.
        """
        expired = self._outbox.expired_claims
        over = expired.choose(opened.found.claims, self._leases, in_flight=in_flight)
        self.is_unresolved = False
        try:
            count = expired.expire(opened.ours, over)
        except LaneClosed:  # of a table that was rewound; they end in the next epoch
            return 0
        self.is_unresolved = expired.has_unresolved
        return count

    def leases_left(self, claims: Sequence[Mapping[str, Any]]) -> list[float]:
        """Return for how many seconds each claim of others has to be left alone.

        Args:
            claims: as they were observed.
        """
        left = [
            max(0.0, self._leases.remaining(str(claim["claim_id"])))
            for claim in claims
            if claim["claimed_by"] != self._outbox.worker_id
        ]
        if self.is_unresolved:  # what is over, and stays, is asked for when it says
            return [seconds for seconds in left if seconds > 0]
        return left

    def whole(self, opened: Opened, *, ahead: int, in_flight: Set[str]) -> Listed | None:
        """Return all that is open, up to where nothing has been tried; None if that is more than a
        window holds.

        Args:
            opened: what is open.
            ahead: batches that a window holds.
            in_flight: our own claims that are; they are left out.
        """
        found, view, reached = opened.found, opened.ours, opened.versions["events"]
        limit = self._batch_size * ahead
        if found.pending > limit:
            if not self._share.has_all:  # commits tell how many events they have, on all lanes
                return None
            opened.counts = self._outbox.deliveries.by_commit(view)
            tried = last_tried(self._outbox, opened.counts, to=reached)
            if tried is None:
                return None
            reached, view = tried, view.where(f"arrival <= {tried}")
        rows = self._outbox.deliveries.listed(
            view, limit=limit, in_flight=in_flight, until=found.listed_until
        )
        if rows is None:
            return None
        waits = [seconds for seconds in self.leases_left(found.claims) if seconds > 0]
        if self.is_unresolved:
            waits.append(self._outbox.unknown_results.seconds_to_wait())
        if found.next_later is not None:
            waits.append((found.next_later - self._outbox.clock.now()).total_seconds())
        return Listed(rows=in_order(rows), reached=reached, seconds=min(waits, default=NEVER))

    def first(self, opened: Opened, *, ahead: int) -> Listed:
        """Return the first of what is eligible, and what is to be ended without being sent.

        Args:
            opened: what is open.
            ahead: batches that a window holds.
        """
        deliveries = self._outbox.deliveries
        # What is ours and in flight keeps its order itself; what is unresolved blocks its key.
        rows = deliveries.eligible(
            opened.ours,
            self._batch_size * ahead,
            held_by=None if self.is_unresolved else self._outbox.worker_id,
            per_destination=self._isolation.per_destination(
                batch_size=self._batch_size, ahead=ahead
            ),
            found=opened.found,
            counts=opened.counts,
        )
        if opened.versions["commands"] > 0 or self._outbox.policies_in_force.any_age:
            ends = deliveries.endable(opened.ours)
            rows = in_order(joined(without(rows, ends), ends))
        pause = self._outbox.unknown_results.seconds_to_wait() if self.is_unresolved else NEVER
        return Listed(rows=rows, reached=None, seconds=pause)
