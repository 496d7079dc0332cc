"""Which takeable deliveries go into the next claim. Pure: no Spark, no clock.

Order is kept by construction: a claim holds a prefix of what is left of each order scope, of one
kind only, and nothing of a scope that is being published elsewhere or in which something failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_outbox.lifecycle import suspect_claim_limit

_FREE: Final = -1  # code of a delivery without an order scope
_NEW: Final = -2  # group of deliveries that nothing has happened to; others: their suspicion


class Kind(StrEnum):
    """What a claim is made of. Each kind is published beside the other, so that whatever is slow
    to fail delays nothing that is well.
    """

    NEW = "new"
    TROUBLED = "troubled"  # failed before, or under suspicion of killing its worker


class Schedule:
    """Takeable deliveries, from which claims are cut.

    Args:
        deliveries: columns of `claims.DELIVERIES`, in the order in which they are taken.
        scopes: the order scope of each, null if it neither waits nor blocks.
        batch_size: deliveries per claim, at most; suspects get smaller ones.
    """

    def __init__(self, deliveries: pa.Table, scopes: pa.StringArray, *, batch_size: int) -> None:
        """Look at each delivery once."""
        self._deliveries = deliveries
        self._batch_size = batch_size
        encoded = scopes.dictionary_encode()
        self._codes = {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}
        self._scope: npt.NDArray[np.int64] = (
            encoded.indices.fill_null(_FREE).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        suspect = deliveries["suspect"].to_numpy()
        failed = deliveries["publish_attempts"].to_numpy()
        self._group: npt.NDArray[np.int64] = np.where(
            suspect > 0, suspect, np.where(failed > 0, 0, _NEW)
        ).astype(np.int64)
        self._left = np.ones(deliveries.num_rows, dtype=bool)
        self._closed = np.zeros(len(self._codes) + 1, dtype=bool)  # the last one is for _FREE

    def __len__(self) -> int:
        return int(np.count_nonzero(self._left & ~self._closed[self._scope]))

    def has(self, kind: Kind) -> bool:
        """Say whether something of a kind is left, takeable at once or not.

        Args:
            kind: what a claim would be made of.
        """
        left = self._left & ~self._closed[self._scope]
        return bool(np.any(left & ((self._group == _NEW) == (kind is Kind.NEW))))

    def close(self, scopes: Iterable[str | None]) -> None:
        """Take nothing more of some scopes: what was to come first has not been delivered.

        Args:
            scopes: order scopes; unknown ones and None are passed over.
        """
        for scope in scopes:
            code = self._codes.get(scope) if scope is not None else None
            if code is not None:
                self._closed[code] = True

    def take(self, kind: Kind, size: int, *, busy: Iterable[str | None] = ()) -> pa.Table:
        """Cut the next claim of a kind.

        Args:
            kind: what it is made of.
            size: deliveries at most.
            busy: order scopes of which something else is in flight.

        Returns:
            Columns of `claims.DELIVERIES`, in order; no rows if there is nothing to take.
        """
        barred = self._closed.copy()
        for scope in busy:
            code = self._codes.get(scope) if scope is not None else None
            if code is not None:
                barred[code] = True
        open_ = self._left & ~barred[self._scope]
        of_kind = (self._group == _NEW) if kind is Kind.NEW else (self._group != _NEW)
        # The oldest one says which group has its turn; suspects of a degree share a claim.
        for group in self._in_turn(open_ & of_kind):
            limit = size
            if group > 0:
                limit = min(size, suspect_claim_limit(batch_size=self._batch_size, suspect=group))
            places = np.flatnonzero(open_ & (self._group == group))
            places = places[self._is_prefix(places, group)][:limit]
            if places.size:
                self._left[places] = False
                return self._deliveries.take(pa.array(places))
        return self._deliveries.slice(0, 0)

    def _in_turn(self, candidates: npt.NDArray[np.bool_]) -> list[int]:
        groups, first = np.unique(self._group[candidates], return_index=True)
        return [int(group) for group in groups[np.argsort(first)]]

    def _is_prefix(self, places: npt.NDArray[np.int64], group: int) -> npt.NDArray[np.bool_]:
        """Say which places have nothing of another group before them in their scope."""
        others = np.flatnonzero(self._left & (self._group != group) & (self._scope != _FREE))
        first_other = np.full(len(self._closed), self._left.size, dtype=np.int64)
        np.minimum.at(first_other, self._scope[others], others)
        first_other[_FREE] = self._left.size
        result: npt.NDArray[np.bool_] = places < first_other[self._scope[places]]
        return result
