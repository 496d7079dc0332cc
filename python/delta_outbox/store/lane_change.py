"""Change the number of lanes: end an epoch, begin the next.

What makes it safe is the rule of every append. A lane is closed by an append without rows right
after the position at which no worker had claimed anything in it: if somebody has claimed meanwhile,
it loses, and is tried again; once it has won, that position is taken, and whoever works in the old
epoch loses. When all lanes are closed, a plan says that the next epoch has begun. So no transition
of an epoch comes after one of the next, and nothing is claimed in between.

Items that wait for people stay as they are: nobody remembers their claims. Whoever ends one has
read in the epoch of its append that it is open.

Any step may be the last of a process: the next relay, `outbox lanes` or other command that appends
transitions goes on. Several may do so at once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.errors import LaneClosed
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.lifecycle.claims import OPEN_ITEM
from delta_outbox.store.epochs import begun_plan, closing_plan, read_epoch
from delta_outbox.store.leases import LeaseWatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.5  # between polls of what is still claimed


class LaneChange:
    """Goes on with a change of the lanes of one outbox.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Store) -> None:
        self._outbox = outbox
        self._leases = LeaseWatch(outbox.clock)
        self._epoch = -1
        self._closed: set[int] = set()  # lanes of that epoch
        self._unreachable: set[int] = set()  # those whose table was rewound

    def run(self, *, lanes: int, actor: str, reason: str, max_wait: float) -> bool:
        """Begin a new epoch; say whether it has begun.

        Args:
            lanes: how many it is to have.
            actor: who asks.
            reason: why.
            max_wait: seconds to wait for what is claimed; what is begun is finished by others.
        """
        outbox = self._outbox
        until = outbox.clock.monotonic() + max_wait
        outbox.logs.read()
        now = outbox.logs.epoch
        # One that was interrupted is what is asked for, if it is for as many.
        asked = now.plan_number if now.becomes == lanes else None
        while True:
            is_over = self.step()
            if asked is not None and outbox.logs.epoch.plan_number > asked:
                return True
            if is_over:  # also what somebody else had begun before us
                asked = self._begin(lanes, actor, reason)
            elif outbox.clock.monotonic() > until:
                return False
            else:
                outbox.clock.sleep(POLL_SECONDS)

    def _begin(self, lanes: int, actor: str, reason: str) -> int | None:
        """Write down that the epoch ends; None if somebody has done so for other lanes."""
        outbox = self._outbox

        def decide(last: NumberedWrite | None) -> dict[str, Any] | None:
            now = read_epoch(last)
            if now.is_ending:
                return None
            return closing_plan(now, lanes=lanes, actor=actor, reason=reason)

        plan = outbox.logs.plans.append(decide, planned_by=outbox.worker_id)
        outbox.logs.read()
        assert plan is not None
        return plan.number if read_epoch(plan).becomes == lanes else None

    def step(self, *, own_are_over: bool = False) -> bool:
        """Go on with a change that was begun, as far as that needs no waiting.

        Args:
            own_are_over: nothing that this worker has claimed is still in its hands.

        Returns:
            Whether none is under way (any more).
        """
        outbox = self._outbox
        outbox.logs.watch()
        now = outbox.logs.epoch
        if not now.is_ending:
            return True
        if now.number != self._epoch:
            self._epoch, self._closed, self._unreachable = now.number, set(), set()
        at, latest = outbox.clock.monotonic(), outbox.projection.latest_versions()
        outbox.logs.catch_up(latest["transitions"])
        read_view = outbox.read_view(latest)
        if self._unreachable:
            lane = outbox.statements.fill("lane", lanes=now.lanes)
            read_view = read_view.where(f"{lane} not in ({', '.join(map(str, self._unreachable))})")
        held, seen = self._lanes_held(read_view), outbox.logs.positions
        if held and self._end_lost(read_view, at=at, own_are_over=own_are_over):
            return False
        if outbox.logs.positions != seen:  # past what the read view shows
            return False
        for log in outbox.logs:
            if log.lane not in held | self._closed and log.close():
                self._closed.add(log.lane)
        if len(self._closed) < now.lanes:
            return False
        closing = outbox.logs.plans.numbered(now.plan_number)
        assert closing is not None
        # If the number is taken, another has said so.
        outbox.logs.plans.append_after(
            closing, begun_plan(closing.plan), planned_by=outbox.worker_id
        )
        outbox.logs.read()
        logger.warning("epoch_begun", extra={"epoch": outbox.logs.epoch.number})
        return not outbox.logs.epoch.is_ending

    def _lanes_held(self, read_view: DataFrame) -> set[int]:
        """Return the lanes in which a worker has claimed something. An item has none: whoever ends
        its claim does so as the log shows it, in whichever epoch that was made.
        """
        claimed = (
            read_view.where(f"state = 'CLAIMED' and not {OPEN_ITEM}")
            .select("ordering_key", "event_id")
            .toArrow()
        )
        return set(self._outbox.logs.epoch.lanes_of(claimed))

    def _end_lost(self, read_view: DataFrame, *, at: float, own_are_over: bool) -> int:
        """End the claims that nobody works on any more; returns how many deliveries that took. `at`
        is when the read view was true, in monotonic seconds.
        """
        outbox = self._outbox
        claims = outbox.deliveries.overview(read_view).claims
        self._leases.observe(claims, at=at)
        over = outbox.expired_claims.choose(
            claims, self._leases, in_flight=() if own_are_over else None
        )
        try:
            return outbox.expired_claims.expire(read_view, over)
        except LaneClosed as closed:
            # The table was rewound: nobody can append there, and what is claimed there stays so
            # until the next epoch.
            self._unreachable.add(closed.lane)
            return 1
