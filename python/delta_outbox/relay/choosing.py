"""Cuts the next claims where destinations are isolated: each has its own.

An event for several destinations is claimed for all of them at once while all are well and without
limits. Otherwise each destination gets a claim of its own: the well ones are sent, the others are
released unsent, and from then on each delivery goes its own way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from delta_outbox.lifecycle.claims import Claim, new_claim_id
from delta_outbox.relay.flight import Flight, Held
from delta_outbox.relay.isolation import Isolation
from delta_outbox.relay.schedule import Kind, Schedule

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

IDLE_SECONDS: Final = 2.0  # of a flight, before it is asked what others could do meanwhile

HoldClaim = Callable[[Kind | None, Claim], Held]


class Choosing:
    """Cuts the claims of one relay.

    Args:
        outbox: makes them.
        flight: what is being published.
        isolation: what each destination may be asked.
        hold: makes a claim one of this relay.
        batch_size: deliveries per claim.
        limit: deliveries claimed at any instant, at most; None for no limit.
    """

    def __init__(
        self,
        outbox: Store,
        flight: Flight,
        isolation: Isolation,
        *,
        hold: HoldClaim,
        batch_size: int,
        limit: int | None,
    ) -> None:
        self._outbox = outbox
        self._flight = flight
        self._isolation = isolation
        self._hold = hold
        self._batch_size = batch_size
        self._limit = limit
        self._turns: dict[str, int] = {}  # destinations to the turn in which they were served
        self._last: dict[str, Kind] = {}

    def choose(self, schedule: Schedule, chosen: list[Held], *, once: bool) -> None:
        """Add the claims that may be made now.

        Args:
            schedule: what is eligible.
            chosen: claims that are to be made already; takes the others.
            once: make one batch, over all destinations.
        """
        waiting = schedule.destinations()
        self._isolation.know(name for to in waiting for name in to.split("|"))
        for to in waiting if once else sorted(waiting, key=lambda one: self._turns.get(one, 0)):
            for kind in self._kinds(to):
                found = self._claims(schedule, kind, to, chosen, once=once)
                if found:
                    chosen += found
                    self._turns[to] = max(self._turns.values(), default=0) + 1
                    self._last[to] = kind
                    if once:
                        break

    def is_held_back(self, schedule: Schedule | None) -> bool:
        """Say whether what is planned has to wait, if nothing of it could be chosen.

        Args:
            schedule: what is planned.
        """
        return self._isolation.is_isolated and schedule is not None

    def is_idle(self, schedule: Schedule | None) -> bool:
        """Say whether something slow is in flight and another destination has nothing planned.

        Args:
            schedule: what is planned.
        """
        if not self.is_held_back(schedule) or self._flight.age() < IDLE_SECONDS:
            return False
        assert schedule is not None
        planned = schedule.destinations(blocked=self._in_flight(()))
        in_flight = [held.to for held in self._flight.held()]
        return self._isolation.has_others(
            name for to in (*planned, *in_flight) for name in to.split("|")
        )

    def _kinds(self, to: str) -> tuple[Kind, Kind]:
        """Take turns: where there is room for one kind only, none is to wait for ever."""
        if self._last.get(to) is Kind.RETRY:
            return Kind.FIRST_ATTEMPT, Kind.RETRY
        return Kind.RETRY, Kind.FIRST_ATTEMPT

    def _claims(
        self, schedule: Schedule, kind: Kind, to: str, chosen: Sequence[Held], *, once: bool
    ) -> list[Held]:
        names = to.split("|")
        room = self._room(names, chosen, once=once)
        if room and not once and self._limit is not None:
            other = Kind.FIRST_ATTEMPT if kind is Kind.RETRY else Kind.RETRY
            if kind is Kind.RETRY and schedule.has(other, to=to):
                room = (room + 1) // 2  # of a limit, a half is for the others
        if not room:
            return []
        if len(names) > 1 and not all(map(self._isolation.is_free, names)):
            return self._parts(schedule, kind, to, room, chosen)
        tasks = self._tasks(schedule, kind, to, chosen)
        if len(names) == 1:
            room = self._isolation.room(to, room) - sum(
                len(held.claim) for held in chosen if held.to == to and held.kind
            )
        if not (tasks and room > 0 and self._admits(kind, to, chosen)):
            return []
        batch = schedule.take(
            kind,
            room,
            blocked=self._in_flight(chosen),
            to=to,
            allowed=self._isolation.allowed(to) if len(names) == 1 else None,
        )
        if not batch.num_rows:
            return []
        held = self._hold(kind, self._outbox.new_claim(batch))
        return [replace(held, to=to, tasks=tasks)]

    def _parts(
        self, schedule: Schedule, kind: Kind, to: str, room: int, chosen: Sequence[Held]
    ) -> list[Held]:
        """Take events for several destinations in a claim for each; of a key one only, for its
        order holds over all of them.
        """
        well = {}
        for name in filter(self._isolation.is_free, to.split("|")):
            well[name] = self._tasks(schedule, kind, name, chosen)
            if not (well[name] and self._admits(kind, name, chosen)):
                return []
        batch = schedule.take(
            kind, room, blocked=self._in_flight(chosen), to=to, one_per_scope=True
        )
        if not batch.num_rows:
            return []
        whole = self._outbox.new_claim(batch)
        parts = []
        for name in to.split("|"):
            held = self._hold(kind if name in well else None, _part(whole, name))
            parts.append(replace(held, to=name, tasks=well.get(name, 0), is_released=not held.kind))
        return parts

    def _admits(self, kind: Kind, to: str, chosen: Sequence[Held]) -> bool:
        """Say whether a claim may start beside what is in flight, and what is to start with it."""
        same = any(held.kind is kind and held.to == to for held in chosen)
        return not same and self._flight.admits(kind, to=to)

    def _in_flight(self, chosen: Sequence[Held]) -> set[str | None]:
        return {scope for held in (*self._flight.held(), *chosen) for scope in held.scopes}

    def _room(self, names: Sequence[str], chosen: Sequence[Held], *, once: bool) -> int:
        if once:
            return max(0, self._batch_size - sum(len(held.claim) for held in chosen))
        if self._limit is None:
            return self._batch_size
        held = [*self._flight.held(), *chosen]
        same = [one for one in held if set(one.to.split("|")) & set(names)]
        left = self._limit - sum(len(one.claim) for one in held)
        share = self._isolation.share(self._limit) - sum(len(one.claim) for one in same)
        return max(0, min(self._batch_size, left, share))

    def _tasks(self, schedule: Schedule, kind: Kind, to: str, chosen: Sequence[Held]) -> int:
        in_use: Counter[str] = Counter()
        taken = 0
        for held in (*self._flight.held(), *chosen):
            taken += held.tasks
            for name in held.to.split("|"):
                in_use[name] += held.tasks
        tasks = self._isolation.tasks(to.split("|"), in_use, taken)
        other = Kind.FIRST_ATTEMPT if kind is Kind.RETRY else Kind.RETRY
        return -(-tasks // 2) if schedule.has(other, to=to) else tasks


def _part(whole: Claim, destination: str) -> Claim:
    """Return the deliveries of a claim for one destination as a claim of their own."""
    its = pc.equal(whole.deliveries["destination"], destination)
    return replace(whole.part(its), claim_id=new_claim_id())
