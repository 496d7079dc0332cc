"""Lists what is open for the window of a relay, from a read view."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import NEVER
from delta_outbox.core.errors import LaneClosed
from delta_outbox.core.literals import listed
from delta_outbox.lifecycle.claims import in_order
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.arrivals import last_tried
from delta_outbox.relay.plan.lane_share import LaneShare
from delta_outbox.relay.plan.left_out import LeftOut
from delta_outbox.relay.plan.others_claims import OthersClaims
from delta_outbox.relay.plan.timing import LOW_SECONDS
from delta_outbox.store.expired_claims import ITEMS_AT_ONCE
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.open_deliveries import LATER, Overview
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


ITEMS_PAUSE: Final = 5.0  # seconds between two looks at items that are over; they end together


@dataclass(kw_only=True)
class Opened:
    """A read view, and how much is open in it.

    Args:
        versions: of the logs that it shows.
        everything: the open deliveries of all lanes.
        ours: those of our lanes.
        found: how much that is, due when, under which claims.
    """

    versions: Mapping[str, int]
    everything: DataFrame
    ours: DataFrame
    found: Overview


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What goes into the window.

    Args:
        rows: columns of `claims.DELIVERIES`, in order.
        reached: version of the event log. Up to there this is all that is open, but for what is
            left out; behind it nothing has been tried. None if it is only the first of it.
        left_out: what is.
        others: what others have claimed.
    """

    rows: pa.Table
    reached: int | None
    left_out: LeftOut
    others: OthersClaims


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
        self._has_more_over = False  # items, than were ended at once

    def open(self, latest: Mapping[str, int], *, at: float, since: float | None = None) -> Opened:
        """Return what is open.

        Args:
            latest: version of each log.
            at: monotonic seconds at which these were the latest.
            since: monotonic seconds at which the transition log was first seen so.
        """
        view = self._outbox.open_deliveries(latest)
        everything, ours = view.frame, self._share.of(view.frame)
        found = self._outbox.deliveries.overview(ours)
        now = self._outbox.clock.monotonic()
        projection, log = self._outbox.projection, self._outbox.tables.transitions
        # What operators have asked for since then is for the next poll.
        versions = {**view.versions, "commands": latest["commands"]}
        if projection.latest_version_here(log) == latest["transitions"]:
            at = now  # they still are
        if versions["transitions"] > latest["transitions"]:
            since = None  # a claim may be newer
        self._leases.observe(found.claims, at=at, since=since)
        return Opened(versions=versions, everything=everything, ours=ours, found=found)

    def end_claims(self, opened: Opened, *, in_flight: Set[str], answered_to: datetime) -> int:
        """End claims whose worker is gone or whose lease we have seen run out, and items that are
        over; return how many transitions that made.

        Args:
            opened: what is open.
            in_flight: our own claims that are.
            answered_to: all commands that were committed by then have been applied.
        """
        expired = self._outbox.expired_claims
        over = expired.choose(opened.found.claims, self._leases, in_flight=in_flight)
        self.is_unresolved = self._has_more_over = False
        try:
            count = expired.expire(opened.ours, over)
            # One append: if it has lost, what is open does not show what came before the next one.
            if not count and opened.found.has_items_over:
                count = expired.end_items(opened.ours, answered_to=answered_to)
                self._has_more_over = count >= ITEMS_AT_ONCE
        except LaneClosed:  # of a table that was rewound; they end in the next epoch
            return 0
        self.is_unresolved = expired.has_unresolved
        return count

    def leases_left(self, found: Overview) -> list[float]:
        """Return for how many seconds each claim of others has to be left alone, and the first of
        the items.

        Args:
            found: what is open, as it was observed.
        """
        return [*self._of_claims(found), *self._of_items(found)]

    def _of_items(self, found: Overview) -> list[float]:
        if found.items_over is None:
            return []
        item = (found.items_over - self._outbox.clock.now()).total_seconds()
        return [max(item, 0.0 if self._has_more_over else ITEMS_PAUSE)]

    def _of_claims(self, found: Overview) -> list[float]:
        left = [
            max(0.0, self._leases.remaining(str(claim["claim_id"])))
            for claim in found.claims
            if claim["claimed_by"] != self._outbox.worker_id
        ]
        if self.is_unresolved:  # what is over, and stays, is asked for when it says
            left = [seconds for seconds in left if seconds > 0]
        return left

    def list_open(
        self, opened: Opened, *, room: int, in_flight: Set[str], leaves_untried: bool
    ) -> Listed:
        """Return what is open, or the first of it.

        Args:
            opened: what is open.
            room: deliveries that a window holds.
            in_flight: our own claims that are; they are left out.
            leaves_untried: if it is more than a window holds, leave out what comes after the last
                commit of which something has been tried.
        """
        found, view, reached = opened.found, opened.ours, opened.versions["events"]
        deliveries, counts, fits = self._outbox.deliveries, None, found.listable <= room
        if not fits:
            counts = deliveries.by_commit(view, at=found.soon)
            # Commits tell how many events they have, on all lanes.
            if leaves_untried and self._share.has_all:
                tried = last_tried(self._outbox, counts, to=reached)
                if tried is not None:
                    view, reached, fits = view.where(f"arrival <= {tried}"), tried, True
                    counts = counts.filter(pc.less_equal(counts["arrival"], tried))
        if fits:
            rows = deliveries.listed(view, limit=room, in_flight=in_flight, until=found.soon)
            if rows is not None:
                others = self._others(opened, in_flight=in_flight, is_whole=True)
                again_at = self._again_at(found, others, due=found.next_later)
                left_out = LeftOut(again_at=again_at)
                return Listed(
                    rows=in_order(rows), reached=reached, left_out=left_out, others=others
                )
        if self._isolation.is_isolated:  # what is far behind may be for a destination of its own
            view, reached, counts = opened.ours, opened.versions["events"], None
        if in_flight:  # what is ours and in flight keeps its order itself
            view = view.where(f"not (state = 'CLAIMED' and claim_id in ({listed(in_flight)}))")
        apart = self._isolation.per_destination(batch_size=self._batch_size, room=room)
        first = deliveries.first(
            view,
            room,
            found=found,
            may_end=opened.versions["commands"] > 0 or self._outbox.policies_in_force.any_age,
            per_destination=apart,
            counts=counts,
        )
        others = self._others(opened, in_flight=in_flight, is_whole=first.is_all)
        left_out = LeftOut(
            first.blocked,
            again_at=self._again_at(found, others, due=first.next_due),
            unavailable=apart.unavailable if apart else frozenset(),
            has_more=first.rows.num_rows < found.listable,
        )
        return Listed(
            rows=first.rows,
            reached=reached if first.is_all else None,
            left_out=left_out,
            others=others,
        )

    def _others(self, opened: Opened, *, in_flight: Set[str], is_whole: bool) -> OthersClaims:
        """Return the claims of others; with what is under them, if the window holds all that is
        open, and the first of them ends soon and can be ended.
        """
        claims = [one for one in opened.found.claims if one["claim_id"] not in in_flight]
        # A lease may have run out since the claims that are over were ended.
        first = max(min(self._of_claims(opened.found), default=NEVER), LOW_SECONDS)
        over_at = self._outbox.clock.monotonic() + first
        held = None
        if is_whole and not self.is_unresolved and first <= LATER.total_seconds():
            ids = [str(one["claim_id"]) for one in claims]
            held = self._outbox.expired_claims.held(opened.ours, ids)
        return OthersClaims(claims=claims, held=held, over_at=over_at)

    def _again_at(self, found: Overview, others: OthersClaims, *, due: datetime | None) -> float:
        """Return when to list again, in monotonic seconds.

        Args:
            found: what is open.
            others: what others have claimed of it.
            due: when the first is due of what is left out.
        """
        clock = self._outbox.clock
        waits = [max(seconds, LOW_SECONDS) for seconds in self._of_items(found)]
        if others.held is None:
            waits.append(others.over_at - clock.monotonic())
        if self.is_unresolved:
            waits.append(self._outbox.unknown_results.seconds_to_wait())
        if due is not None:
            waits.append((due - clock.now()).total_seconds())
        return clock.monotonic() + min(waits, default=NEVER)
