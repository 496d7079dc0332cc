"""Keeps what a relay saw at its last poll, and whether another poll would show more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from delta_outbox.relay.lane_share import LaneShare
from delta_outbox.store.store import Store


class LastPoll:
    """The last poll of one relay.

    Args:
        outbox: the store.
        share: which lanes are its own.
    """

    def __init__(self, outbox: Store, share: LaneShare) -> None:
        self._outbox = outbox
        self._share = share
        self.versions: Final[dict[str, int]] = {}
        """The versions of the logs that it saw; of the events, those that were planned. Empty if
        the next one has to ask for a read view."""
        self.unowned = 0
        """Open deliveries that this relay had neither planned nor claimed."""
        self.standing_by = False
        """Whether it left the work to another relay."""

    def __bool__(self) -> bool:
        return bool(self.versions)

    def saw(self, latest: Mapping[str, int]) -> None:
        """Note what a poll has seen.

        Args:
            latest: version of each log.
        """
        self.versions.update(latest)

    def forget(self) -> None:
        """Know nothing of it any more."""
        self.versions.clear()

    def has_news(self) -> bool:
        """Say whether there are new events since, where the log is a folder here."""
        latest = self._outbox.projection.latest_version_here(self._outbox.tables.events)
        return latest is not None and latest > self.versions.get("events", latest)

    def shows(self, latest: Mapping[str, int]) -> bool:
        """Say whether a poll would show nothing but what follows from the last one.

        Nothing was committed since; or only what we have appended ourselves, all that was open is
        owned, and what was requeued, or waits behind something DEAD, is heeded by
        `Timing.next_due`. (Our append loses if somebody else was on the lane before it, so only
        what came after the last one has to be asked for.)

        Args:
            latest: version of each log now.
        """
        if latest == self.versions:
            return True
        return self.is_all_owned(latest) and latest["events"] == self.versions.get("events")

    def is_all_owned(self, latest: Mapping[str, int]) -> bool:
        """Say whether all that is open is owned or new.

        Args:
            latest: version of each log now.
        """
        return (
            self.unowned == 0
            and not self.standing_by
            and self._share.has_all
            and bool(self)
            and self._outbox.logs.has_all(
                after=self.versions["transitions"], to=latest["transitions"]
            )
            and latest["commands"] == self.versions.get("commands")
        )
