"""The window: open deliveries in the order of the log, from which claims are cut. Pure.

It holds what may be claimed and what keeps that from being claimed: what is not due, what has to
wait for its destination, what others have claimed, and what is DEAD and holds its key. `select`
says which of it is eligible at an instant, by the rules of the view `eligible_events`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import Mask, Numbers, mask_of
from delta_outbox.core.byte_bounds import fitting, told_sizes
from delta_outbox.core.instants import instant_of, micros
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.endings import suspect_claim_limit
from delta_outbox.lifecycle.order_scopes import goes_to, scopes_of
from delta_outbox.lifecycle.policy import UNSERVED, DeliveryPolicy, PolicySet

_FREE: Final = -1  # code of a delivery without an order scope
_FIRST_ATTEMPT: Final = -2  # group of deliveries that have not failed; others: their suspicion
_NEVER: Final = np.iinfo(np.int64).max  # microseconds

Allowed = Callable[[pa.Table], Mask]
Places = Numbers


class Kind(StrEnum):
    """What a claim is made of."""

    FIRST_ATTEMPT = "first attempt"
    RETRY = "retry"  # failed before, or under suspicion of killing its worker


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """What a window no longer holds.

    Args:
        scopes: its order scopes.
        next_change: when something of it may become eligible, or too old; None if time changes
            nothing.
    """

    scopes: pa.StringArray
    next_change: datetime | None


class Window:
    """Open deliveries, from which claims are cut.

    Args:
        deliveries: columns of `claims.DELIVERIES`, in order.
        policies: the delivery policies in force.
        batch_size: deliveries per claim, at most; suspects get smaller ones.
        batch_bytes: of the payloads of a claim, at most, but for one that is larger; a payload of
            unknown size counts as so many. None for any number.
        lanes: the lane of each, where there are several; those of an order scope share one.

    Raises:
        ValueError: of a delivery it is not known whether it only blocks.
    """

    def __init__(
        self,
        deliveries: pa.Table,
        policies: PolicySet,
        *,
        batch_size: int,
        batch_bytes: int | None = None,
        lanes: Sequence[int] | None = None,
    ) -> None:
        self._lanes = None if lanes is None else np.array(lanes, dtype=np.int32)
        self._deliveries = deliveries
        self._batch_size = batch_size
        self._batch_bytes = batch_bytes
        self._bytes = told_sizes(deliveries["payload_bytes"], unknown=batch_bytes or 0)
        if deliveries["blocks"].null_count:
            raise ValueError("Window: `blocks` must be known of each delivery.")
        blocks = mask_of(deliveries["blocks"])
        self._is_killed = np.asarray(deliveries["kill_command_id"].is_valid()) & ~blocks
        kinds = ClaimPolicies.by_type(deliveries["event_type"], policies)
        scopes, self._scope = _coded(scopes_of(deliveries, policies))
        self._codes = {name: code for code, name in enumerate(scopes)}
        self._scope[self._is_killed] = _FREE  # it blocks nothing
        self._event = _events(deliveries)
        self._destinations, self._to = _coded(goes_to(deliveries, kinds))
        self._group = _groups(deliveries)
        self._due = _micros(deliveries["available_at"], otherwise=-_NEVER)
        self._expires = expiry_of(deliveries, kinds)
        self._back = _micros(deliveries["available_at"], otherwise=_NEVER)  # from others
        self._back[~blocks] = self._due[blocks] = self._expires[blocks] = _NEVER
        self._is_served = mask_of(kinds.column(lambda one: one is not UNSERVED, pa.bool_()))
        self._lets_go = self._is_killed | ~mask_of(kinds.hold)
        self._left = np.ones(deliveries.num_rows, dtype=bool)
        self._blocked = np.zeros(len(self._codes) + 1, dtype=bool)  # the last one is for _FREE
        self._eligible = self._ends = np.zeros(deliveries.num_rows, dtype=bool)
        self._unavailable: Collection[str] = ()
        self._selected_until = -_NEVER  # microseconds; what was selected may be others then

    # --- what may be claimed -----------------------------------------------------------------

    def select(self, *, now: datetime, unavailable: Collection[str] = ()) -> bool:
        """Say whether something is eligible; `take` and the rest go by it until the next time.

        Eligible is what is due, not killed, not past its age, for a destination that is available,
        no task that this process does not run, and has nothing before it in its order scope that is
        not eligible itself, but for what lets its key go when it is ended unsent.

        Args:
            now: the instant.
            unavailable: destinations that nothing is to be claimed for.
        """
        at = micros(now)
        if at >= self._selected_until or unavailable != self._unavailable:
            self._unavailable = unavailable
            is_due, self._ends = self._due_at(at, unavailable)
            self._eligible = self._in_order(is_due & ~self._ends, self._ends)
            self._selected_until = self._next_change(at)
        return bool(self._eligible.any())

    def drop_waiting(
        self,
        *,
        until: datetime,
        back_by: datetime,
        unavailable: Collection[str] = (),
    ) -> Dropped | None:
        """Drop what can neither be claimed nor ended between the last selection and an instant;
        return None if that is nothing. What `block` blocks stays: that ends with the next poll.
        What others have claimed stays if its lease ends soon; what comes behind it stays as well,
        unless the instant is earlier.

        Args:
            until: the instant.
            back_by: when soon is.
            unavailable: destinations that are so all the time.
        """
        at, soon = micros(until), micros(back_by)
        is_due, ends = self._due_at(at, unavailable)
        # What grows too old in between may be claimed until then.
        may, lost = is_due & ~self._is_killed & ~self._ends, self._left & (self._back <= soon)
        if at < soon:
            may = self._in_order(may, self._ends)
        may = self._in_order(may | lost, self._ends)
        gone = self._left & ~(may | self._ends | ends & self._is_killed)
        gone &= ~self._blocked[self._scope]
        if not gone.any():
            return None
        # What is due before that and too old then is to be ended, but not before it is due.
        ends_at = np.maximum(self._due, self._expires)
        change = np.where(self._due > at, self._due, ends_at)[gone].min()
        codes = np.unique(self._scope[gone])
        scopes = pa.array(list(self._codes), pa.string()).take(pa.array(codes[codes != _FREE]))
        self._left &= ~gone
        self._selected_until = -_NEVER
        return Dropped(
            scopes=scopes, next_change=None if change == _NEVER else instant_of(int(change))
        )

    def __len__(self) -> int:
        return int(np.count_nonzero(self._eligible))

    @property
    def waiting(self) -> int:
        """Return how many deliveries are held that are neither eligible nor to be ended, but for
        what others have claimed.
        """
        is_free = self._back == _NEVER
        return int(np.count_nonzero(self._left & is_free & ~self._eligible & ~self._ends))

    @property
    def has_ends(self) -> bool:
        """Say whether something is to be ended without being sent."""
        return bool(self._ends.any())

    @property
    def next_change(self) -> datetime | None:
        """Return when something may become eligible, or too old; None if time changes nothing."""
        return None if self._selected_until == _NEVER else instant_of(self._selected_until)

    @property
    def is_over(self) -> bool:
        """Say whether nothing is left that is open and not claimed."""
        return not bool(np.any(self._left & (self._due < _NEVER)))

    @property
    def claimed_for(self) -> set[str]:
        """The destinations of what was claimed before: a delivery keeps that of its first claim."""
        is_open = pa.array(self._left & (self._due < _NEVER))
        return {*self._deliveries["destination"].filter(is_open).unique().to_pylist()} - {""}

    def left(self) -> pa.Table:
        """Return what was not taken, eligible or not, in order: columns of the deliveries."""
        return self._deliveries.filter(pa.array(self._left))

    def destinations(self, *, blocked: Iterable[str | None] = ()) -> list[str]:
        """Return where what is eligible goes to, those first whose first delivery comes first.

        Args:
            blocked: order scopes of which something else is in flight, so that they do not count.
        """
        free = self._free_of(blocked)
        first = {
            name: int(np.argmax(its))
            for name in self._destinations
            if (its := free & self._is_to(name)).any()
        }
        return sorted(first, key=first.__getitem__)

    def counts(self, *, to: str, blocked: Iterable[str | None]) -> dict[Kind, int]:
        """Return how many deliveries of each kind are eligible for some destinations.

        Args:
            to: the destinations.
            blocked: order scopes of which something else is in flight, so that they do not count.
        """
        groups = self._group[self._free_of(blocked) & self._is_to(to)]
        new = int(np.count_nonzero(groups == _FIRST_ATTEMPT))
        return {Kind.FIRST_ATTEMPT: new, Kind.RETRY: groups.size - new}

    # --- claims ------------------------------------------------------------------------------

    def block(self, scopes: Iterable[str | None]) -> None:
        """Block some scopes, for what was to come first is open again: take nothing more of them.

        Args:
            scopes: order scopes; unknown ones and None are passed over.
        """
        codes = self._codes_of(scopes)
        self._blocked[codes] = True
        self._eligible = self._eligible & ~self._blocked[self._scope]

    def take_ends(self, size: int) -> pa.Table:
        """Cut a claim of what is to be ended without being sent: killed, or past its age. No order
        holds it back.

        Args:
            size: deliveries at most.
        """
        return self._taken(self._of_one_lane(np.flatnonzero(self._ends))[:size])

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
        """Cut the next claim of a kind from what is eligible; it is of one lane.

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
        free = self._free_of(blocked)
        if to is not None:
            free = free & self._is_to(to)
        free &= (self._group == _FIRST_ATTEMPT) == (kind is Kind.FIRST_ATTEMPT)
        # The oldest one says which group has its turn; suspects of a degree share a claim.
        for group in self._in_turn(free):
            limit = size
            if group > 0:
                limit = min(size, suspect_claim_limit(batch_size=self._batch_size, suspect=group))
            places = np.flatnonzero(free & (self._group == group))
            if allowed is not None:
                places = places[allowed(self._deliveries.take(pa.array(places)))]
            if one_per_scope:
                places = places[self._is_first(places)]
            if share > 1 and self._fitting(places, limit) < places.size:
                places = places[self._is_of_share(places, share)]
            places = self._of_one_lane(places[self._is_prefix(places, self._ends)])
            places = places[: self._fitting(places, limit)]
            if places.size:
                return self._taken(places)
        return self._deliveries.slice(0, 0)

    def _taken(self, places: Places) -> pa.Table:
        self._left[places] = self._eligible[places] = self._ends[places] = False
        if places.size and places[-1] - places[0] + 1 == places.size:  # nothing between is left out
            return self._deliveries.slice(int(places[0]), places.size)
        return self._deliveries.take(pa.array(places))

    # --- parts -------------------------------------------------------------------------------

    def _due_at(self, at: int, unavailable: Collection[str]) -> tuple[Mask, Mask]:
        """Return what is due and not blocked for now, and what of the due is to be ended unsent."""
        is_due = self._left & (self._due <= at)
        ends = is_due & (self._is_killed | (self._expires <= at))
        is_due &= ~self._blocked[self._scope] & self._is_served
        for name in self._destinations if unavailable else ():
            if set(name.split("|")) <= set(unavailable):
                is_due &= ~self._is_to(name)
        return is_due, ends

    def _in_order(self, candidates: Mask, ends: Mask) -> Mask:
        """Return the candidates that have nothing before them in their scope but other candidates,
        and what lets its key go as it ends.
        """
        if np.array_equal(candidates, self._left & ~(ends & self._lets_go)):
            return candidates
        places = np.flatnonzero(candidates)
        found = np.zeros_like(candidates)
        found[places[self._is_prefix(places, ends)]] = True
        return found

    def _next_change(self, at: int) -> int:
        """Return when what is selected may be others, in microseconds."""
        later = [column[self._left & (column > at)] for column in (self._due, self._expires)]
        return min(int(column.min()) if column.size else _NEVER for column in later)

    def _fitting(self, places: Places, limit: int) -> int:
        """Return how many of the first places one claim may hold, by their number and bytes."""
        if self._batch_bytes is None:
            return limit
        return min(limit, fitting(self._bytes[places[:limit]], self._batch_bytes))

    def _of_one_lane(self, places: Places) -> Places:
        """Return those places that are of the same lane as the first."""
        if self._lanes is None or not places.size:
            return places
        same: Mask = self._lanes[places] == self._lanes[places[0]]
        return places.compress(same)

    def _free_of(self, blocked: Iterable[str | None]) -> Mask:
        """Say what is eligible and in none of some scopes."""
        codes = self._codes_of(blocked)
        if not codes:
            return self._eligible.copy()
        is_blocked = np.zeros_like(self._blocked)
        is_blocked[codes] = True
        return self._eligible & ~is_blocked[self._scope]

    def _codes_of(self, scopes: Iterable[str | None]) -> list[int]:
        found = (self._codes.get(scope) for scope in scopes if scope is not None)
        return [code for code in found if code is not None]

    def _in_turn(self, candidates: Mask) -> list[int]:
        found = self._group[candidates]
        if found.size and np.all(found == found[0]):  # as a rule, and to sort them takes long
            return [int(found[0])]
        groups, first = np.unique(found, return_index=True)
        return [int(group) for group in groups[np.argsort(first)]]

    def _is_to(self, to: str) -> Mask:
        if self._destinations == [to]:
            return np.ones_like(self._left)
        code = self._destinations.index(to) if to in self._destinations else -1
        result: Mask = self._to == code
        return result

    def _is_first(self, places: Places) -> Mask:
        """Say which places are the first of their scope; without a scope each is."""
        scopes = self._scope[places]
        first = np.zeros(len(places), dtype=bool)
        first[np.unique(scopes, return_index=True)[1]] = True
        first |= scopes == _FREE
        return first

    def _is_of_share(self, places: Places, share: int) -> Mask:
        """Say which places are of every so many-th of their scopes; without a scope each is."""
        scopes = self._scope[places]
        is_there = np.zeros(len(self._blocked), dtype=bool)
        is_there[scopes] = True
        is_there[_FREE] = False
        number = np.cumsum(is_there) - 1
        result: Mask = (number[scopes] % share == 0) | (scopes == _FREE)
        return result

    def _is_prefix(self, places: Places, ends: Mask) -> Mask:
        """Say which places have nothing before them in their scope that stays behind. Deliveries of
        one event come neither before nor after each other.
        """
        behind = self._left & ~(ends & self._lets_go) & (self._scope != _FREE)
        behind[places] = False
        others = np.flatnonzero(behind)
        first_other = np.full(len(self._blocked), self._left.size, dtype=np.int64)
        first_other[self._scope[others][::-1]] = self._event[others][::-1]  # the last one counts
        first_other[_FREE] = self._left.size
        result: Mask = self._event[places] <= first_other[self._scope[places]]
        return result


def _coded(names: pa.StringArray) -> tuple[list[str], Places]:
    """Number the different names of a column, -1 for none."""
    encoded = names.dictionary_encode()
    codes = encoded.indices.fill_null(_FREE).to_numpy(zero_copy_only=False).astype(np.int64)
    return encoded.dictionary.to_pylist(), codes


def _events(deliveries: pa.Table) -> Places:
    """Number the events: deliveries of one stand together, one for each destination."""
    ids = deliveries["event_id"]
    is_next = np.ones(deliveries.num_rows, dtype=bool)
    is_next[1:] = mask_of(pc.not_equal(ids.slice(1), ids.slice(0, max(0, len(ids) - 1))))
    return np.cumsum(is_next) - 1


def _groups(deliveries: pa.Table) -> Places:
    suspect = deliveries["suspect"].to_numpy()
    failed = deliveries["publish_attempts"].to_numpy()
    first = np.where(failed > 0, 0, _FIRST_ATTEMPT)
    return np.where(suspect > 0, suspect, first).astype(np.int64)


def _micros(instants: pa.ChunkedArray, *, otherwise: int) -> Places:
    numbers = pc.fill_null(instants.cast(pa.int64()), otherwise)
    return np.asarray(numbers).astype(np.int64)  # a copy


def expiry_of(deliveries: pa.Table, kinds: ClaimPolicies) -> Places:
    """Return when each delivery is too old, in microseconds since 1970; the largest number for
    never.

    Args:
        deliveries: column started_at.
        kinds: the policy of each.
    """
    result = np.full(deliveries.num_rows, _NEVER, dtype=np.int64)
    ages = kinds.column(_age, pa.int64())
    if ages.null_count < len(ages):
        its = np.asarray(ages.is_valid())
        started = _micros(deliveries["started_at"], otherwise=_NEVER // 2)
        result[its] = started[its] + ages.drop_null().to_numpy()
    return result


def _age(policy: DeliveryPolicy) -> int | None:
    """Return after how many microseconds a delivery is too old, if ever."""
    seconds = policy.expires_after_seconds
    return None if seconds is None else min(round(seconds * 1e6), _NEVER // 4)
