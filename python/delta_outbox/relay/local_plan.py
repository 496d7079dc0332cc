"""Makes local plans: of what is new and what was requeued, where all else that is open is owned by
this relay, so that no read view has to be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from delta_outbox.lifecycle.claims import DELIVERIES
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.relay.arrivals import Arrivals
from delta_outbox.relay.event_places import with_sizes
from delta_outbox.relay.isolation import Isolation, goes_to
from delta_outbox.relay.schedule import Schedule
from delta_outbox.relay.waiting import Waiting, joined
from delta_outbox.store.store import Store

FIRST_BATCHES: Final = 2  # of a plan while nothing is being published

NOTHING: Final = DELIVERIES.empty_table()


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan of what is new and of what was requeued.

    Args:
        schedule: what may be taken; None if there is nothing.
        reached: up to which version of the event log.
        new: events that were read for it.
    """

    schedule: Schedule | None
    reached: int
    new: int = 0


class LocalPlan:
    """Plans for one relay from what it knows.

    Args:
        outbox: the store.
        isolation: whether destinations are isolated.
        batch_size: deliveries per claim.
    """

    def __init__(self, outbox: Store, isolation: Isolation, *, batch_size: int) -> None:
        self._outbox = outbox
        self._isolation = isolation
        self._batch_size = batch_size
        self._arrivals = Arrivals(outbox)
        self.waiting: Final = Waiting()
        """What is owned and was requeued since, or is not due."""
        self.has_more = False
        """Whether new events were left for the next plan."""
        self.is_full = False
        """Whether more was requeued, is not due, or has to wait for its destination, than can be
        kept beside a plan."""

    @property
    def is_waiting(self) -> bool:
        """Say whether something was requeued, or is not due, or waits behind something DEAD."""
        return self.waiting.due_at is not None

    def clear(self) -> None:
        """Forget everything: the log is asked again."""
        self.waiting.clear()
        self.has_more = False

    def schedule_of(self, eligible: pa.Table, scopes: pa.StringArray) -> Schedule:
        """Return a plan of deliveries.

        Args:
            eligible: columns of `claims.DELIVERIES`, in order.
            scopes: the order scope of each.
        """
        policies, epoch = self._outbox.policies_in_force, self._outbox.logs.epoch
        eligible = self._arrivals.with_locations(eligible)
        return Schedule(
            with_sizes(self._outbox.spark, self._outbox.tables, eligible),
            scopes,
            batch_size=self._batch_size,
            batch_bytes=self._outbox.settings.relay.batch_bytes,
            to=goes_to(eligible, policies),
            lanes=epoch.lanes_of(eligible) if epoch.lanes > 1 else None,
        )

    def plan(
        self,
        schedule: Schedule | None,
        *,
        after: int,
        to: int,
        ahead: int,
        is_publishing: bool,
        is_idle: bool,
    ) -> Planned | None:
        """Plan what is new and what was requeued.

        `Schedule` keeps the order among them, and what is in flight keeps its own.

        Args:
            schedule: what is planned already.
            after: up to which version of the event log it is.
            to: the last version.
            ahead: batches to plan; the first ones only, as long as somebody waits for them.
            is_publishing: whether something is being published.
            is_idle: whether that is slow, and another destination has nothing planned.

        Returns:
            None if a read view has to be asked for.
        """
        limit = self._batch_size * ahead
        if len(self.waiting) > limit:
            self.is_full = True
            return None
        if not is_publishing:
            limit = self._batch_size * min(ahead, FIRST_BATCHES)
        now = self._outbox.clock.now()
        due_at = self.waiting.due_at
        has_enough = schedule is not None and 2 * len(schedule) > limit
        if (
            has_enough
            and after < to
            and self._isolation.is_isolated
            and (is_idle or not is_publishing)
        ):
            # What waits for its destination must not keep what is behind it from the others.
            self.is_full = True
            return None
        if has_enough and (due_at is None or due_at > now):
            self.has_more = after < to
            return Planned(schedule=schedule, reached=after)
        left = schedule.left() if schedule is not None else NOTHING
        more, reached = NOTHING, after
        if to > after and left.num_rows < limit:
            found = self._arrivals.read(after=after, to=to, limit=limit - left.num_rows)
            if found is None:
                return None
            more, reached = found.deliveries, found.to
        self.has_more = reached < to
        policies = self._outbox.policies_in_force
        eligible, scopes = self.waiting.take(
            joined(left, more), lambda table: scopes_of(table, policies), now=now
        )
        return Planned(
            schedule=self.schedule_of(eligible, scopes) if eligible.num_rows else None,
            reached=reached,
            new=more.num_rows,
        )
