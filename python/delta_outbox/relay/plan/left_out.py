"""Remembers what the window leaves out because it has to wait: 8 bytes for each order scope."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from delta_outbox.core.arrow import Mask, mask_of
from delta_outbox.core.clock import NEVER
from delta_outbox.core.hashing import Numbers, numbers_of
from delta_outbox.core.instants import instant_of
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.relay.plan.timing import Timing
from delta_outbox.relay.plan.window import Window, expiry_of
from delta_outbox.store.open_deliveries import LATER

_OPEN: Final = frozenset[str]()


class LeftOut:
    """What one window has left out since it was listed. Nothing that comes later in its order
    scopes may be claimed before it, so that is left out as well.

    Args:
        scopes: the numbers of its order scopes, ascending; none if left out.
        again_at: monotonic seconds at which the window has to be listed again.
        unavailable: destinations for which something is left out, to be listed again as soon as one
            of them is available.
        has_more: something else is left out, such as tasks that this process does not run.
    """

    def __init__(
        self,
        scopes: Numbers | None = None,
        *,
        again_at: float = NEVER,
        unavailable: frozenset[str] = _OPEN,
        has_more: bool = False,
    ) -> None:
        self._scopes = np.empty(0, np.uint64) if scopes is None else scopes
        self.again_at = again_at
        self.unavailable = unavailable
        self._has_more = has_more

    @property
    def is_any(self) -> bool:
        """Say whether something is left out, or the window has to be listed again."""
        return (
            bool(self._scopes.size or self.unavailable) or self.again_at < NEVER or self._has_more
        )

    def cut(self, window: Window, *, room: int, closed: frozenset[str], timing: Timing) -> None:
        """Leave out of a window what is not due for long; if more has to wait than there is room
        for, also what waits for its destination, and if need be all that is not due.

        Args:
            window: what may be claimed.
            room: how many deliveries may have to wait.
            closed: destinations that nothing is to be claimed for.
            timing: the time.
        """
        now = timing.now()
        soon = now + LATER
        window.select(now=now, unavailable=closed)
        for until, unavailable in ((soon, _OPEN), (soon, closed), (now, closed)):
            dropped = window.drop_waiting(until=until, back_by=soon, unavailable=unavailable)
            if dropped is not None:
                self._has_more = True
                numbers = np.sort(numbers_of(pa.chunked_array([dropped.scopes])))
                numbers = numbers[~self._has(numbers)]
                places = np.searchsorted(self._scopes, numbers)
                self._scopes = np.insert(self._scopes, places, numbers)
                self.unavailable |= unavailable
                if dropped.next_change is not None:
                    self.list_by(timing.instant_of(dropped.next_change))
            window.select(now=now, unavailable=closed)
            if window.waiting <= room:
                return

    def holds_any(self, scopes: pa.StringArray) -> bool:
        """Say whether something is left out of some order scopes.

        Args:
            scopes: the scopes; None is passed over.
        """
        return bool(self._has(numbers_of(pa.chunked_array([scopes.drop_null()]))).any())

    def none_behind(self, arrivals: pa.Table, policies: PolicySet, timing: Timing) -> pa.Table:
        """Return the new events that do not come behind something that is left out.

        Args:
            arrivals: columns of `claims.DELIVERIES`, of events that came later.
            policies: the delivery policies in force.
            timing: the time.
        """
        if not self._scopes.size:
            return arrivals
        scopes = scopes_of(arrivals, policies)
        has_one = mask_of(scopes.is_valid())
        is_behind = np.zeros(arrivals.num_rows, dtype=bool)
        is_behind[has_one] = self._has(numbers_of(pa.chunked_array([scopes.drop_null()])))
        if policies.any_age and is_behind.any():  # no order keeps what is too old from its end
            kinds = ClaimPolicies.by_type(arrivals["event_type"], policies)
            expires = expiry_of(arrivals, kinds)[is_behind].min()
            self.list_by(timing.instant_of(instant_of(int(expires))))
        return arrivals.filter(pa.array(~is_behind))

    def _has(self, numbers: Numbers) -> Mask:
        if not self._scopes.size:
            return np.zeros(numbers.size, dtype=bool)
        places = np.minimum(np.searchsorted(self._scopes, numbers), self._scopes.size - 1)
        found: Mask = self._scopes[places] == numbers
        return found

    def list_by(self, at: float) -> None:
        """Note that the window has to be listed again.

        Args:
            at: monotonic seconds, by which.
        """
        self.again_at = min(self.again_at, at)
