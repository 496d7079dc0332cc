"""Watches the leases of other relays by our own clock, so that clock skew ends none too early."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from delta_outbox.core.clock import Clock


class LeaseWatch:
    """Remembers since when each claim of others has been seen unchanged.

    Args:
        clock: whose monotonic seconds count.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[float, float]] = {}  # claim -> (first seen, lease), seconds
        self._at = 0.0

    def observe(
        self, claims: Iterable[Mapping[str, object]], *, at: float, since: float | None = None
    ) -> None:
        """Look at the claims that are live, and forget those that are not.

        Args:
            claims: rows with claim_id, claimed_at and lease_expires_at.
            at: monotonic seconds at which the log is known to have shown them so. To read them may
                take longer than their leases last: what has ended meanwhile they do not tell.
            since: monotonic seconds at which the log was first seen so: all of them were live from
                then on. Now if left out.
        """
        first, seen = self._clock.monotonic() if since is None else since, {}
        for claim in claims:
            claimed_at, expires_at = claim["claimed_at"], claim["lease_expires_at"]
            assert isinstance(claimed_at, datetime)
            assert isinstance(expires_at, datetime)
            lease = (expires_at - claimed_at).total_seconds()
            claim_id = str(claim["claim_id"])
            seen[claim_id] = self._seen.get(claim_id, (first, lease))
        self._seen, self._at = seen, at

    def is_over(self, claim_id: str) -> bool:
        """Say whether a claim was seen unchanged for its lease.

        Args:
            claim_id: a claim that was observed.
        """
        first, lease = self._seen[claim_id]
        return first + lease <= self._at

    def remaining(self, claim_id: str) -> float:
        """Return the seconds for which a claim must still be seen unchanged before it may end.

        Args:
            claim_id: a claim that was observed.
        """
        first, lease = self._seen[claim_id]
        return first + lease - self._clock.monotonic()
