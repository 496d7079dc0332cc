"""Cuts claims from eligible deliveries. Pure: no Spark, no clock.

Order is kept by construction: a claim holds a prefix of what is left of each order scope, of one
kind only, and nothing of a scope that is being published elsewhere or in which something failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_outbox.core.byte_bounds import fitting, told_sizes
from delta_outbox.lifecycle.endings import suspect_claim_limit

_FREE: Final = -1  # code of a delivery without an order scope
_FIRST_ATTEMPT: Final = -2  # group of deliveries that have not failed; others: their suspicion

Allowed = Callable[[pa.Table], npt.NDArray[np.bool_]]


class Kind(StrEnum):
    """What a claim is made of."""

    FIRST_ATTEMPT = "first attempt"
    RETRY = "retry"  # failed before, or under suspicion of killing its worker

    @property
    def other(self) -> Kind:
        """Return the other kind."""
        return Kind.RETRY if self is Kind.FIRST_ATTEMPT else Kind.FIRST_ATTEMPT


class Schedule:
    """Eligible deliveries, from which claims are cut.

    Args:
        deliveries: columns of `claims.DELIVERIES`, in the order in which they are taken.
        scopes: the order scope of each, null if it neither waits nor blocks.
        batch_size: deliveries per claim, at most; suspects get smaller ones.
        batch_bytes: of the payloads of a claim, at most, but for one that is larger; a payload of
            unknown size counts as so many. None for any number.
        to: the destinations of each, where they are isolated.
        lanes: the lane of each, where there are several; those of an order scope share one.
    """

    def __init__(
        self,
        deliveries: pa.Table,
        scopes: pa.StringArray,
        *,
        batch_size: int,
        batch_bytes: int | None = None,
        to: pa.StringArray | None = None,
        lanes: Sequence[int] | None = None,
    ) -> None:
        self._lanes = None if lanes is None else np.array(lanes, dtype=np.int32)
        self._deliveries = deliveries
        self._batch_size = batch_size
        self._batch_bytes = batch_bytes
        self._bytes = told_sizes(deliveries["payload_bytes"], unknown=batch_bytes or 0)
        encoded = scopes.dictionary_encode()
        self._codes = {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}
        self._scope: npt.NDArray[np.int64] = (
            encoded.indices.fill_null(_FREE).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        suspect = deliveries["suspect"].to_numpy()
        failed = deliveries["publish_attempts"].to_numpy()
        self._group: npt.NDArray[np.int64] = np.where(
            suspect > 0, suspect, np.where(failed > 0, 0, _FIRST_ATTEMPT)
        ).astype(np.int64)
        self._destinations: list[str] = [""]
        self._to: npt.NDArray[np.int32] = np.zeros(deliveries.num_rows, dtype=np.int32)
        if to is not None:
            parted = to.dictionary_encode()
            self._destinations = parted.dictionary.to_pylist()
            self._to = parted.indices.to_numpy(zero_copy_only=False)
        self._left = np.ones(deliveries.num_rows, dtype=bool)
        self._blocked = np.zeros(len(self._codes) + 1, dtype=bool)  # the last one is for _FREE

    @property
    def claimed_for(self) -> set[str]:
        """The destinations of what was claimed before: a delivery keeps that of its first claim."""
        return set(self._deliveries["destination"].unique().drop_null().to_pylist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._left & ~self._blocked[self._scope]))

    def left(self) -> pa.Table:
        """Return what was not taken, blocked or not, in order: columns of the deliveries."""
        return self._deliveries.filter(pa.array(self._left))

    def destinations(self, *, blocked: Iterable[str | None] = ()) -> list[str]:
        """Return where what is left goes to, those first whose first delivery comes first.

        Args:
            blocked: order scopes of which something else is in flight, so that they do not count.
        """
        left = self._free_of(blocked)
        first = {
            name: int(np.argmax(its))
            for name in self._destinations
            if (its := left & self._is_to(name)).any()
        }
        return sorted(first, key=first.__getitem__)

    def counts(self, *, to: str, blocked: Iterable[str | None]) -> dict[Kind, int]:
        """Return how many deliveries of each kind are left for some destinations.

        Args:
            to: the destinations.
            blocked: order scopes of which something else is in flight, so that they do not count.
        """
        groups = self._group[self._free_of(blocked) & self._is_to(to)]
        new = int(np.count_nonzero(groups == _FIRST_ATTEMPT))
        return {Kind.FIRST_ATTEMPT: new, Kind.RETRY: groups.size - new}

    def block(self, scopes: Iterable[str | None]) -> bool:
        """Block some scopes, for what was to come first has not been delivered: take nothing more
        of them.

        Args:
            scopes: order scopes; unknown ones and None are passed over.

        Returns:
            Whether something of them is left.
        """
        codes = self._codes_of(scopes)
        self._blocked[codes] = True
        return bool(codes) and bool(np.any(self._left & np.isin(self._scope, codes)))

    def take(
        self,
        kind: Kind,
        size: int,
        *,
        blocked: Iterable[str | None] = (),
        to: str | None = None,
        allowed: Allowed | None = None,
        one_per_scope: bool = False,
        share: int = 1,
    ) -> pa.Table:
        """Cut the next claim of a kind; it is of one lane.

        Args:
            kind: what it is made of.
            size: deliveries at most.
            blocked: order scopes of which something else is in flight.
            to: for these destinations only; for any if left out.
            allowed: says of deliveries which of them may be taken now; all if left out.
            one_per_scope: take no more than the first of each order scope.
            share: where there is more, share the order scopes with other claims, so many with this
                one: with few keys the first would have them all.

        Returns:
            Columns of `claims.DELIVERIES`, in order; no rows if there is nothing to take.
        """
        open_ = self._free_of(blocked)
        of_kind = (
            (self._group == _FIRST_ATTEMPT)
            if kind is Kind.FIRST_ATTEMPT
            else (self._group != _FIRST_ATTEMPT)
        )
        if to is not None:
            of_kind = of_kind & self._is_to(to)
        # The oldest one says which group has its turn; suspects of a degree share a claim.
        for group in self._in_turn(open_ & of_kind):
            limit = size
            if group > 0:
                limit = min(size, suspect_claim_limit(batch_size=self._batch_size, suspect=group))
            places = np.flatnonzero(open_ & of_kind & (self._group == group))
            if allowed is not None:
                places = places[allowed(self._deliveries.take(pa.array(places)))]
            if one_per_scope:
                places = places[self._is_first(places)]
            if share > 1 and self._fitting(places, limit) < places.size:
                places = places[self._is_of_share(places, share)]
            places = self._of_one_lane(places[self._is_prefix(places)])
            places = places[: self._fitting(places, limit)]
            if places.size:
                self._left[places] = False
                first, last = int(places[0]), int(places[-1])
                if last - first + 1 == places.size:  # nothing between is left out
                    return self._deliveries.slice(first, places.size)
                return self._deliveries.take(pa.array(places))
        return self._deliveries.slice(0, 0)

    def _fitting(self, places: npt.NDArray[np.int64], limit: int) -> int:
        """Return how many of the first places one claim may hold, by their number and bytes."""
        if self._batch_bytes is None:
            return limit
        return min(limit, fitting(self._bytes[places[:limit]], self._batch_bytes))

    def _of_one_lane(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return those places that are of the same lane as the first."""
        if self._lanes is None or not places.size:
            return places
        same: npt.NDArray[np.bool_] = self._lanes[places] == self._lanes[places[0]]
        return places.compress(same)

    def _free_of(self, blocked: Iterable[str | None]) -> npt.NDArray[np.bool_]:
        """Say what is left and in none of some scopes, nor in one that is blocked already."""
        all_blocked = self._blocked.copy()
        all_blocked[self._codes_of(blocked)] = True
        return self._left & ~all_blocked[self._scope]

    def _codes_of(self, scopes: Iterable[str | None]) -> list[int]:
        found = (self._codes.get(scope) for scope in scopes if scope is not None)
        return [code for code in found if code is not None]

    def _in_turn(self, candidates: npt.NDArray[np.bool_]) -> list[int]:
        found = self._group[candidates]
        if found.size and np.all(found == found[0]):  # as a rule, and to sort them takes long
            return [int(found[0])]
        groups, first = np.unique(found, return_index=True)
        return [int(group) for group in groups[np.argsort(first)]]

    def _is_to(self, to: str) -> npt.NDArray[np.bool_]:
        if self._destinations == [to]:
            return np.ones_like(self._left)
        code = self._destinations.index(to) if to in self._destinations else -1
        result: npt.NDArray[np.bool_] = self._to == code
        return result

    def _is_first(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Say which places are the first of their scope; without a scope each is."""
        scopes = self._scope[places]
        first = np.zeros(len(places), dtype=bool)
        first[np.unique(scopes, return_index=True)[1]] = True
        first |= scopes == _FREE
        return first

    def _is_of_share(self, places: npt.NDArray[np.int64], share: int) -> npt.NDArray[np.bool_]:
        """Say which places are of every so many-th of their scopes; without a scope each is."""
        scopes = self._scope[places]
        is_there = np.zeros(len(self._blocked), dtype=bool)
        is_there[scopes] = True
        is_there[_FREE] = False
        number = np.cumsum(is_there) - 1
        result: npt.NDArray[np.bool_] = (number[scopes] % share == 0) | (scopes == _FREE)
        return result

    def _is_prefix(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Say which places have nothing before them in their scope that stays behind."""
        behind = self._left & (self._scope != _FREE)
        behind[places] = False
        others = np.flatnonzero(behind)
        first_other = np.full(len(self._blocked), self._left.size, dtype=np.int64)
        first_other[self._scope[others][::-1]] = others[::-1]  # of a scope, the last one counts
        first_other[_FREE] = self._left.size
        result: npt.NDArray[np.bool_] = places < first_other[self._scope[places]]
        return result
