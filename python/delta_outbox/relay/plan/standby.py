"""Says whether a relay leaves the only lane to another one that was there before.

Advice, as all ownership is: a wrong guess costs time, not events.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

STANDBY_SECONDS: Final = 3.0  # between polls of a lane on which another relay works
OWNER_SECONDS: Final = 10.0  # while the log stands still, its owner's doings are looked at so often


class Standby:
    """Watches the owner of a lane.

    Args:
        outbox: the store.
        heart: says who else is alive.
        leases: of the claims of others.
    """

    def __init__(self, outbox: Store, heart: Heartbeat, leases: LeaseWatch) -> None:
        self._outbox = outbox
        self._heart = heart
        self._leases = leases
        self._owner = ""
        self._left = ""  # the owner of whose end was told
        self._poll_again_at = 0.0  # monotonic seconds; until then nothing need be looked at
        # A version of the log, and the monotonic seconds at which it was first seen.
        self._at_rest = -1, 0.0

    @property
    def at_rest_since(self) -> float:
        """Return when the log was first seen as it is, in monotonic seconds."""
        return self._at_rest[1]

    def saw(self, version: int) -> bool:
        """Note the latest version of the transition log, which has just been read; say whether it
        has moved.

        Args:
            version: of its last commit.
        """
        if version == self._at_rest[0]:
            return False
        self._at_rest = version, self._outbox.clock.monotonic()
        return True

    def goes_on(self, *, moved: bool, now: float) -> bool:
        """Say whether to go on standing by without another poll of what is open.

        While the log moves somebody is at work. While it stands still nothing can have changed but
        that a lease has run out, or that the owner has left.

        Args:
            moved: whether the log has.
            now: monotonic seconds.
        """
        if moved:
            self._poll_again_at = now + self._outbox.policies_in_force.shortest_lease
            return not self._heart.is_gone(self._owner)
        return now < self._poll_again_at and bool(self._heart.earlier())

    def owner_has_left(self) -> bool:
        """Say once whether the process of the owner has ended since; costs a look at a file."""
        if self._owner == self._left or not self._heart.is_gone(self._owner):
            return False
        self._left = self._owner
        return True

    def polled(self, leases: Iterable[float]) -> None:
        """Note that what is open has been polled.

        Args:
            leases: seconds that are left of each.
        """
        now = self._outbox.clock.monotonic()
        self._poll_again_at = now + min([OWNER_SECONDS, *leases])

    def has_owner(self, claims: Sequence[Mapping[str, object]]) -> bool:
        """Say whether another living relay was here first.

        A relay whose claim we have seen run out of its lease is not at work, whatever it said.

        Args:
            claims: those that are live, as they were observed.
        """
        if self._outbox.expired_claims.is_alone:  # what others have said need not be read
            return False
        stalled = {
            claim["claimed_by"] for claim in claims if self._leases.is_over(str(claim["claim_id"]))
        }
        for other in self._heart.earlier():
            if other not in stalled and not self._outbox.expired_claims.is_gone(other):
                self._owner = other
                return True
        return False

    def begins(self) -> None:
        """Note that what is open has been listed, and is left to the owner."""
        logger.info("standing_by", extra={"owner": self._owner})
