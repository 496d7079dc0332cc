"""What one relay has planned: the window, what it leaves out, and what of the logs it shows."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.delta.log_reader import LogReader
from delta_outbox.lifecycle.claims import DELIVERIES, in_order, joined, without
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.left_out import LeftOut
from delta_outbox.relay.plan.others_claims import OthersClaims
from delta_outbox.relay.plan.timing import STALE_SECONDS, Timing
from delta_outbox.relay.plan.window import Window
from delta_outbox.relay.publish.event_places import with_sizes
from delta_outbox.store.expired_claims import Ended
from delta_outbox.store.store import Store

FIRST_BATCHES: Final = 2  # that are read while nothing is in flight: somebody waits for them
NOTHING: Final = DELIVERIES.empty_table()
_EMPTY: Final = Window(NOTHING, PolicySet(policies=()), batch_size=1)


class Plan:
    """What is planned, as the logs were up to some version of each. It is made of a list, takes in
    what comes afterwards, and another one replaces it when in doubt. A new one holds nothing.

    Args:
        outbox: the store.
        isolation: what each destination may be asked.
        timing: told when something may become eligible.
        batch_size: deliveries per claim.
        room: deliveries that the window holds.
    """

    def __init__(
        self, outbox: Store, isolation: Isolation, timing: Timing, *, batch_size: int, room: int
    ) -> None:
        self._outbox = outbox
        self._clock = outbox.clock
        self._isolation = isolation
        self._timing = timing
        self._batch_size = batch_size
        self._room = room
        self.window = _EMPTY
        self.left_out = LeftOut()
        self.versions: dict[str, int] = {}
        """Of the logs, that it shows."""
        self.is_whole = False
        """Whether the window holds all that is open up to there, but for what is left out."""
        self.others = OthersClaims()
        """What others have claimed."""
        self.has_more = False
        """Whether events were left unread."""
        self.policy_version = ""
        self._requeued: list[pa.Table] = []  # since the window was made, and open again
        self._blocked: set[str | None] = set()  # their order scopes

    # --- what it is made of ------------------------------------------------------------------

    def hold(
        self,
        deliveries: pa.Table,
        left_out: LeftOut,
        *,
        versions: Mapping[str, int],
        is_whole: bool,
        others: OthersClaims,
    ) -> None:
        """Take what was listed.

        Args:
            deliveries: columns of `claims.DELIVERIES`, in order.
            left_out: what is, of what is open.
            versions: of the logs.
            is_whole: that is all, but for what is left out.
            others: what others have claimed.
        """
        self.left_out = left_out
        self._fill(deliveries)
        self.versions, self.is_whole = dict(versions), is_whole
        self.others = others
        self.policy_version = self._outbox.policies_in_force.version

    def add(
        self, new: pa.Table, *, versions: Mapping[str, int], has_more: bool, are_on_record: bool
    ) -> None:
        """Take what is open again, and what is new.

        Args:
            new: columns of `claims.DELIVERIES`, of events that came after all others.
            versions: of the logs, that are read up to there.
            has_more: more events have come.
            are_on_record: the endings of what is open again; else that stays blocked.
        """
        requeued = self._requeued if are_on_record else []
        if new.num_rows or requeued:
            if are_on_record:
                self._requeued, self._blocked = [], set()
            self._fill(in_order(joined(self.window.left(), *requeued, new)))
        self.versions, self.has_more = dict(versions), has_more
        self._note_next_due()

    def requeue(self, deliveries: pa.Table) -> None:
        """Note what is open again; until it is on record nothing is taken of its order scopes.

        Args:
            deliveries: columns of `claims.DELIVERIES`.
        """
        scopes = {*scopes_of(deliveries, self._outbox.policies_in_force).to_pylist()}
        self._requeued.append(deliveries)
        self._blocked |= scopes
        self.window.block(scopes)

    def release(self, ended: Ended, *, others: OthersClaims) -> bool:
        """Take in what is left of claims of others that have been ended; False if it was left out,
        so that all has to be listed: something may come before it. What was left out behind it is
        listed a little later.

        Args:
            ended: those; that is on record.
            others: what others have still claimed.
        """
        policies, left = self._outbox.policies_in_force, self.window.left()
        blocking, free = left.filter(left["blocks"]), left.filter(pc.invert(left["blocks"]))
        unheld = scopes_of(without(ended.left, blocking), policies)
        if unheld.null_count < len(unheld):
            return False
        if self.left_out.holds_any(scopes_of(ended.deliveries, policies)):
            self.left_out.list_by(self._clock.monotonic() + STALE_SECONDS)
        self.others = others
        blocking = without(blocking, ended.deliveries)
        self._fill(in_order(joined(free, blocking, self._located(ended.left))))
        self._note_next_due()
        return True

    def _fill(self, deliveries: pa.Table) -> None:
        """Make the window of deliveries, in order."""
        outbox, epoch = self._outbox, self._outbox.logs.epoch
        located = self._located(deliveries)
        self.window = Window(
            with_sizes(outbox.spark, outbox.tables, located),
            outbox.policies_in_force,
            batch_size=self._batch_size,
            batch_bytes=outbox.settings.relay.batch_bytes,
            lanes=epoch.lanes_of(located) if epoch.lanes > 1 else None,
        )
        self.window.block(self._blocked)
        self.left_out.cut(
            self.window,
            room=self._room,
            closed=self._isolation.unavailable(),
            timing=self._timing,
        )

    def _located(self, deliveries: pa.Table) -> pa.Table:
        return LogReader(self._outbox.spark).located(self._outbox.tables.events, deliveries)

    def _note_next_due(self) -> None:
        """Note when the next poll may be of use, with the window as it is."""
        has_work = self.has_work()  # before `next_change`, which tells of the last selection
        change = self.window.next_change
        self._timing.next_due = min(self.left_out.again_at, self.others.over_at)
        if change is not None:
            self._timing.due_no_later(self._timing.instant_of(change))
        if self.has_more and not has_work:  # none of what was read is due
            self._timing.next_due = self._clock.monotonic()

    # --- what it tells -----------------------------------------------------------------------

    def select(self) -> bool:
        """Select what may be claimed now; say whether something may."""
        return self.window.select(now=self._clock.now(), unavailable=self._isolation.unavailable())

    def has_work(self) -> bool:
        """Say whether something may be claimed now, or is to be ended unsent."""
        return self.select() or self.window.has_ends

    @property
    def has_enough(self) -> bool:
        """Say whether so much is eligible that no more events are read."""
        return len(self.window) > self._room // 2

    def missing(self, *, are_first: bool) -> int:
        """Return how many events more are to be read.

        Args:
            are_first: somebody waits for them, so that a few batches have to do.
        """
        if self.has_enough:
            return 0
        most = min(self._room, self._batch_size * FIRST_BATCHES) if are_first else self._room
        return max(0, most - len(self.window))

    def may_others_go_on(self) -> bool:
        """Say whether there are destinations for which nothing in the window is eligible."""
        planned = self.window.destinations()
        return self._isolation.has_others(name for to in planned for name in to.split("|"))

    @property
    def is_all_done(self) -> bool:
        """Say whether nothing is left of all that was open."""
        is_more = self.left_out.is_any or self._requeued or self.has_more or self.others.claims
        return self.is_whole and self.window.is_over and not is_more

    def follows(self, latest: Mapping[str, int], *, at: float, lanes: Set[int]) -> bool:
        """Say whether some lanes have got nothing since but new events and our own appends, so that
        nothing has to be listed.

        (Our append loses if somebody else was on the lane before it, so only what came after the
        last one has to be asked for.)

        Args:
            latest: version of each log.
            at: monotonic seconds.
            lanes: ours.
        """
        return (
            self.is_whole
            and at < self.left_out.again_at
            and self.left_out.unavailable <= self._isolation.unavailable()
            and self.policy_version == self._outbox.policies_in_force.version
            and latest["commands"] == self.versions["commands"]
            and self._outbox.logs.has_all(
                after=self.versions["transitions"], to=latest["transitions"], lanes=lanes
            )
        )

    def shows(self, latest: Mapping[str, int], *, follows: bool) -> bool:
        """Say whether a poll would show nothing but what follows from the last one.

        Args:
            latest: version of each log.
            follows: what `follows` says of them.
        """
        if follows:
            return latest["events"] == self.versions["events"] and not self._requeued
        return (
            latest == self.versions
            and not self.is_whole
            and self._isolation.unavailable() == self.left_out.unavailable
            and not (self.select() and self._outbox.policies_in_force.any_age)
        )
