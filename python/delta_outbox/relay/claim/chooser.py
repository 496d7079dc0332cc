"""Cuts the next claims: at most K in flight for each destination, with disjoint order scopes.

An event for several destinations is claimed for all of them at once while all are well and without
limits. Otherwise each destination gets a claim of its own: the well ones are sent, the others are
released unsent, and from then on each delivery goes its own way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import Mask, shared_texts
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.claims import Claim, new_claim_id
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.relay.claim.flight import Flight, Held
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.destinations.task_runner import TaskRunner
from delta_outbox.relay.plan.timing import Spare
from delta_outbox.relay.plan.window import Kind, Window

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

IDLE_SECONDS: Final = 2.0  # of a flight, before it is asked what others could do meanwhile


@dataclass(frozen=True, kw_only=True)
class _Turn:
    """What is known when the next claim for some destinations is cut.

    Args:
        window: what is eligible.
        to: the destinations, joined by `|`.
        chosen: claims that are to be made already.
        held: those, and what is in flight.
        blocked: their order scopes.
        left: how many deliveries of each kind are eligible for the destinations.
        once: make one batch, over all destinations.
    """

    window: Window
    to: str
    chosen: Sequence[Held]
    held: Sequence[Held]
    blocked: Set[str | None]
    left: Mapping[Kind, int]
    once: bool

    @property
    def names(self) -> Sequence[str]:
        """Return the destinations one by one."""
        return self.to.split("|")


class Chooser:
    """Cuts the claims of one relay.

    Args:
        outbox: makes them.
        flight: what is being published.
        isolation: what each destination may be asked.
        claims: in flight for a destination, at most.
        batch_size: deliveries per claim.
        limit: deliveries claimed at any instant, at most; None for no limit.
        tasks: runs what goes to a third party; there is nothing if left out.
    """

    def __init__(
        self,
        outbox: Store,
        flight: Flight,
        isolation: Isolation,
        *,
        claims: int,
        batch_size: int,
        limit: int | None,
        tasks: TaskRunner | None = None,
    ) -> None:
        self._outbox = outbox
        self._flight = flight
        self._isolation = isolation
        self._claims = claims
        self._batch_size = batch_size
        self._limit = limit
        self._runner = tasks or TaskRunner()
        self._turns: dict[str, int] = {}  # destinations to the turn in which they were served
        self._last: dict[str, Kind] = {}

    def choose(self, window: Window, chosen: list[Held], *, once: bool) -> None:
        """Add the claims that may be made now.

        Args:
            window: what is eligible, selected now.
            chosen: claims that are to be made already; takes the others.
            once: make one batch, over all destinations.
        """
        waiting = window.destinations()
        self._isolation.know(name for to in waiting for name in to.split("|"))
        for to in waiting if once else sorted(waiting, key=lambda one: self._turns.get(one, 0)):
            while found := self._next(window, to, chosen, once=once):
                chosen += found
                self._turns[to] = max(self._turns.values(), default=0) + 1
                if once:
                    break

    def held(
        self,
        kind: Kind | None,
        claim: Claim,
        *,
        to: str = "",
        slices: int = 0,
        is_released: bool = False,
    ) -> Held:
        """Return a claim as one of this relay; the arguments are those of `Held`."""
        policies = self._outbox.policies_in_force
        return Held(
            kind=kind,
            claim=claim,
            log=self._outbox.logs.of(claim.deliveries),
            order_scopes={*shared_texts(scopes_of(claim.deliveries, policies))},
            to=to,
            slices=slices,
            is_released=is_released,
        )

    def spare(self, window: Window | None) -> Spare:
        """Say what could go beside what is in flight.

        Args:
            window: what is planned, selected now, of which no claim can be cut; None if nothing is.
        """
        if window is None:
            return Spare(is_idle=False, has_slot=False)
        return Spare(is_idle=self._is_idle(window), has_slot=self._has_slot(window))

    def _has_slot(self, window: Window) -> bool:
        """Say whether one claim more could be in flight: for a destination of what is planned, or
        for one that nothing is planned for.
        """
        held, planned = self._flight.held(), window.destinations()
        if any(self._slots(to, held) for to in planned):
            return True
        full = {one.to for one in held if not self._slots(one.to, held)}
        return self._isolation.has_others(
            name for to in (*planned, *full) for name in to.split("|")
        )

    def _is_idle(self, window: Window) -> bool:
        """Say whether something slow is in flight and another destination has nothing planned."""
        if not self._isolation.is_isolated or self._flight.age() < IDLE_SECONDS:
            return False
        planned = window.destinations(blocked=self._scopes(self._flight.held()))
        in_flight = [held.to for held in self._flight.held()]
        return self._isolation.has_others(
            name for to in (*planned, *in_flight) for name in to.split("|")
        )

    def _next(self, window: Window, to: str, chosen: Sequence[Held], *, once: bool) -> list[Held]:
        """Return the next claim for some destinations, in parts where they are told apart."""
        held = [*self._flight.held(), *chosen]
        if not self._slots(to, held):
            return []
        blocked = self._scopes(held)
        turn = _Turn(
            window=window,
            to=to,
            chosen=chosen,
            held=held,
            blocked=blocked,
            left=window.counts(to=to, blocked=blocked),
            once=once,
        )
        # Take turns: where there is room for one kind only, none is to wait for ever.
        kinds = (Kind.RETRY, Kind.FIRST_ATTEMPT)
        for kind in kinds[::-1] if self._last.get(to) is Kind.RETRY else kinds:
            if turn.left[kind]:
                found = self._of_kind(turn, kind)
                if found:
                    self._last[to] = kind
                    return found
        return []

    def _of_kind(self, turn: _Turn, kind: Kind) -> list[Held]:
        to, names, held = turn.to, turn.names, turn.held
        room = self._room(turn)
        is_shared = kind is Kind.RETRY and turn.left[Kind.FIRST_ATTEMPT]
        if is_shared and self._limit is not None and not turn.once:
            room = (room + 1) // 2  # of a limit, a half is for the others
        are_free = all(map(self._isolation.is_free, names))
        if len(names) > 1 and not are_free:
            return self._parts(turn, kind, self._isolation.pace.room(to, room))
        if len(names) == 1:
            room = self._isolation.room(to, room)
        is_task = to in self._runner.third_parties
        # Rates and breakers count a claim only once it is on record, so one claim per append.
        waits = (is_task or not are_free) and any(one.to == to and one.kind for one in turn.chosen)
        if is_task:
            slots = 0 if waits else self._slots(to, held, kind)
            return self._tasks_of(turn, kind, min(room, slots))
        slices = self._slices(names, held)
        if waits or not (room and slices and self._slots(to, held, kind)):
            return []
        # Keys and slices are shared with the claims that may yet start beside this one.
        slots = 1 if turn.once or room < self._batch_size else self._slots(to, held)
        batch = turn.window.take(
            kind,
            self._isolation.pace.room(to, room),
            blocked=turn.blocked,
            to=to,
            allowed=self._isolation.allowed(to) if len(names) == 1 else None,
            share=slots,
        )
        if not batch.num_rows:
            return []
        if not self._isolation.is_isolated and batch.num_rows == sum(turn.left.values()):
            slots = 1  # nothing is left to start, and what comes later waits for no worker
        claim = self._outbox.new_claim(batch)
        return [self.held(kind, claim, to=to, slices=-(-slices // slots))]

    def _parts(self, turn: _Turn, kind: Kind, room: int) -> list[Held]:
        """Take events for several destinations in a claim for each; of a key one only, for its
        order holds over all of them.
        """
        well = {}
        for name in filter(self._isolation.is_free, turn.names):
            well[name] = self._slices([name], turn.held)
            if not (well[name] and self._slots(name, turn.held, kind)):
                return []
        is_there = any(self._isolation.room(name, 1) for name in turn.names)
        if not (room and is_there):
            return []
        batch = turn.window.take(kind, room, blocked=turn.blocked, to=turn.to, one_per_scope=True)
        if not batch.num_rows:
            return []
        whole = self._outbox.new_claim(batch)
        return [
            self.held(
                kind if name in well else None,
                _part(whole, name),
                to=name,
                slices=well.get(name, 0),
                is_released=name not in well,
            )
            for name in turn.names
        ]

    def _tasks_of(self, turn: _Turn, kind: Kind, room: int) -> list[Held]:
        """Take tasks of a third party in a claim for each: none waits for the end of another."""
        if not room:
            return []
        batch = turn.window.take(kind, room, to=turn.to, allowed=partial(self._allowed, turn.to))
        if not batch.num_rows:
            return []
        claims: Sequence[Claim] = self._outbox.new_claim(batch).singles()
        if turn.to == TO_DO:
            claims = self._runner.handed_over(claims)
        return [self.held(kind, one, to=turn.to) for one in claims]

    def _allowed(self, third_party: str, tasks: pa.Table) -> Mask:
        """Say which tasks there is room for, of those that the rate of their key lets pass."""
        by_key = self._isolation.allowed(third_party)
        if by_key is None:
            return self._runner.allowed(tasks)
        found = by_key(tasks)
        found[found] = self._runner.allowed(tasks.filter(pa.array(found)))
        return found

    def _slots(self, to: str, held: Sequence[Held], kind: Kind | None = None) -> int:
        """Return how many claims more may be in flight. One slot is never for retries, so that
        whatever is slow to fail delays nothing that is well.
        """
        kinds = [one.kind for one in held if one.to == to and one.kind is not None]
        is_task = to in self._runner.third_parties
        claims = self._isolation.at_once(to) if is_task else self._claims
        free = claims - len(kinds)
        if kind is Kind.RETRY:
            free = min(free, max(1, claims - 1) - kinds.count(Kind.RETRY))
        return max(0, free)

    def _room(self, turn: _Turn) -> int:
        if turn.once:
            return max(0, self._batch_size - sum(len(one.claim) for one in turn.chosen))
        if self._limit is None:
            return self._batch_size
        same = [one for one in turn.held if set(one.to.split("|")) & set(turn.names)]
        left = self._limit - sum(len(one.claim) for one in turn.held)
        share = self._isolation.share(self._limit) - sum(len(one.claim) for one in same)
        return max(0, min(self._batch_size, left, share))

    def _scopes(self, held: Sequence[Held]) -> set[str | None]:
        """Return the order scopes of which something is in flight."""
        policies = self._outbox.policies_in_force
        return set[str | None]().union(*(one.scopes_by(policies) for one in held))

    def _slices(self, names: Sequence[str], held: Sequence[Held]) -> int:
        in_use: Counter[str] = Counter()
        for one in held:
            for name in one.to.split("|"):
                in_use[name] += one.slices
        return self._isolation.slices(names, in_use, sum(one.slices for one in held))


def _part(whole: Claim, destination: str) -> Claim:
    """Return the deliveries of a claim for one destination as a claim of their own."""
    its = pc.equal(whole.deliveries["destination"], destination)
    return replace(whole.part(its), claim_id=new_claim_id())
