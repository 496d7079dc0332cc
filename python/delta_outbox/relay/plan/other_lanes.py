"""The backlog of other lanes, where there are several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_outbox.relay.plan.lane_share import LaneShare
from delta_outbox.relay.plan.standby import STANDBY_SECONDS
from delta_outbox.relay.plan.timing import Timing
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OtherLanes:
    """What one relay, with nothing to do on its own lanes, has seen of the others.

    Args:
        outbox: the store.
        share: which lanes are its own.
        timing: of its polls; told when something here may become eligible.
    """

    def __init__(self, outbox: Store, share: LaneShare, timing: Timing) -> None:
        self._outbox = outbox
        self._share = share
        self._timing = timing
        self.open = 0
        """Deliveries, with those that came since they were polled."""
        self.due = 0
        """Those that may be claimed now, and claims, which may be left to us."""
        self._versions: Mapping[str, int] = {}
        self._quiet_until = float("-inf")  # monotonic seconds

    def forget(self) -> None:
        """Know nothing any more: the lanes are others, and another poll is of use at once."""
        self.open = self.due = 0
        self._quiet_until = float("-inf")

    def seconds_quiet(self) -> float:
        """Return the seconds until another poll may be of use."""
        return self._quiet_until - self._outbox.clock.monotonic()

    @property
    def are_left_alone(self) -> bool:
        """Say whether there are none, or they have been polled a short while ago."""
        return self._share.has_all or self.seconds_quiet() > 0

    def is_quiet(self, latest: Mapping[str, int]) -> bool:
        """Say whether another poll would probably show the same.

        Args:
            latest: version of each log.
        """
        return self.seconds_quiet() > 0 and all(
            latest[name] == self._versions[name] for name in ("events", "commands")
        )

    def poll(self, read_view: DataFrame, latest: Mapping[str, int]) -> None:
        """Poll them, once it is known when something of our own lanes may become eligible.

        Args:
            read_view: what is open on all lanes.
            latest: version of each log that it was taken from.
        """
        now = self._outbox.clock.monotonic()
        self.open = self.due = 0
        self._versions = latest
        self._quiet_until = now + min(STANDBY_SECONDS, max(0.0, self._timing.next_due - now))
        if self._share.has_all:
            return
        found = self._outbox.deliveries.overview(self._share.others(read_view))
        self.open, self.due = found.open, found.due + len(found.claims)
        if found.next_due is not None and not self.due:
            self._timing.due_no_later(self._timing.instant_of(found.next_due))
