"""What a relay knows from its last look at the logs, and whether another one would show more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from delta_outbox.outbox import Outbox
from delta_outbox.relay.lane_share import LaneShare


class LastLook:
    """The last look of one relay.

    Args:
        outbox: the store.
        share: which lanes are its own.
    """

    def __init__(self, outbox: Outbox, share: LaneShare) -> None:
        """Have looked at nothing yet."""
        self._outbox = outbox
        self._share = share
        self.heads: Final[dict[str, int]] = {}
        """The versions of the logs that it saw; of the events, those that were planned. Empty if
        the next one has to look at everything."""
        self.loose = 0
        """Open deliveries that were neither planned nor ours."""
        self.standing_by = False
        """Whether it left the work to another relay."""

    def __bool__(self) -> bool:
        return bool(self.heads)

    def saw(self, heads: Mapping[str, int]) -> None:
        """Note what a look has seen.

        Args:
            heads: of the logs.
        """
        self.heads.update(heads)

    def forget(self) -> None:
        """Know nothing of it any more."""
        self.heads.clear()

    def has_news(self) -> bool:
        """Say whether there are new events since, where the log is a folder here."""
        head = self._outbox.projection.head_here(self._outbox.tables.events)
        return head is not None and head > self.heads.get("events", head)

    def shows(self, heads: Mapping[str, int]) -> bool:
        """Say whether a look would show nothing but what follows from the last one.

        Nothing was committed since; or only what we have appended ourselves, all that was open is
        ours or planned, and what has come back, or waits behind something DEAD, is heeded by
        `Timing.next_due`. (Our append loses if somebody else was on the lane before it, so only
        what came after the last one has to be asked for.)

        Args:
            heads: of the logs now.
        """
        if heads == self.heads:
            return True
        return self.is_all_ours(heads) and heads["events"] == self.heads.get("events")

    def is_all_ours(self, heads: Mapping[str, int]) -> bool:
        """Say whether all that is open is ours, planned, or new.

        Args:
            heads: of the logs now.
        """
        return (
            self.loose == 0
            and not self.standing_by
            and self._share.has_all
            and bool(self)
            and self._outbox.logs.has_all(after=self.heads["transitions"], to=heads["transitions"])
            and heads["commands"] == self.heads.get("commands")
        )
