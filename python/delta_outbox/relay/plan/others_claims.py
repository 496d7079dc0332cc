"""What others had claimed when the window was listed, and how it comes back when they are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import NEVER
from delta_outbox.store.expired_claims import Ended, ExpiredClaims
from delta_outbox.store.leases import LeaseWatch


@dataclass(frozen=True, kw_only=True)
class OthersClaims:
    """Claims of others.

    Args:
        claims: from `overview`.
        held: their deliveries, as `ExpiredClaims.held` returns them; None where all has to be
            listed again when a lease is over.
        over_at: when the first lease is, in monotonic seconds.
    """

    claims: Sequence[Mapping[str, Any]] = ()
    held: pa.Table | None = None
    over_at: float = NEVER

    def release(
        self, expired: ExpiredClaims, leases: LeaseWatch, *, at: float, in_flight: Set[str]
    ) -> Ended:
        """End those that are over, by what was listed of them.

        Args:
            expired: ends them.
            leases: has observed them.
            at: monotonic seconds at which the log is known to have shown them as they were listed.
            in_flight: our own claims that are.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        assert self.held is not None
        leases.observe(self.claims, at=at)
        over = expired.choose(self.claims, leases, in_flight=in_flight)
        its = self.held.filter(pc.is_in(self.held["claim_id"], pa.array(over, pa.string())))
        return expired.end(its)

    def without(self, ended: Ended, leases: LeaseWatch, *, now: float) -> OthersClaims:
        """Return the claims that are left.

        Args:
            ended: those that are not.
            leases: has observed them.
            now: monotonic seconds.
        """
        assert self.held is not None
        gone = ended.deliveries["claim_id"].unique()
        claims = [one for one in self.claims if one["claim_id"] not in {*gone.to_pylist()}]
        waits = [leases.remaining(str(one["claim_id"])) for one in claims]
        return OthersClaims(
            claims=claims,
            held=self.held.filter(pc.invert(pc.is_in(self.held["claim_id"], gone))),
            over_at=now + min(waits, default=NEVER),
        )
