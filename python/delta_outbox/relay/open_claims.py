"""Ends the open claims that are over, and says how long the others last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from delta_outbox.core.errors import LaneClosed
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Claimed = Mapping[str, object]


class OpenClaims:
    """The open claims, as one relay sees them.

    Args:
        outbox: the store.
        leases: seen of others.
    """

    def __init__(self, outbox: Store, leases: LeaseWatch) -> None:
        self._outbox = outbox
        self._leases = leases
        self.are_unresolved = False
        """Whether some that are over have to stay claimed for now."""

    def end(self, read_view: DataFrame, claims: Sequence[Claimed], *, alive: Set[str]) -> int:
        """End claims whose worker is gone or whose lease we have seen run out.

        Args:
            read_view: what is open.
            claims: those in it, as they were observed.
            alive: our own that are in flight or end with the next append.

        Returns:
            How many transitions that made.
        """
        over = self._outbox.expired_claims.choose(claims, self._leases, in_flight=alive)
        try:
            count = self._outbox.expired_claims.expire(read_view, over)
        except LaneClosed:  # of a table that was rewound; they end in the next epoch
            return 0
        self.are_unresolved = self._outbox.expired_claims.has_unresolved
        return count

    def seconds_left(self, claims: Sequence[Claimed]) -> list[float]:
        """Return for how many seconds each claim of others has to be left alone.

        Args:
            claims: as they were observed.
        """
        leases = [
            max(0.0, self._leases.remaining(str(claim["claim_id"])))
            for claim in claims
            if claim["claimed_by"] != self._outbox.worker_id
        ]
        if (
            self.are_unresolved
        ):  # what is over, and stays as it is for now, is asked for when it says
            leases = [seconds for seconds in leases if seconds > 0]
        return leases
