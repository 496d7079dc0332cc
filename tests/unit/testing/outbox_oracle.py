"""What must be true of an outbox, derived from what was done to it and what it answered.

The rules are written down here a second time, for one event at a time and without the product's
functions, so that a slip there is not repeated here.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from delta_outbox.lifecycle.results import Delivered, Failed, Rejected, Result, Unknown
from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.adapter import SHORT_LIVED, Adapter, Held, NewEvent, Record

HOLDING = "conformance.hold"  # on_dead = hold
KEYS = (None, "a", "b")
LEGAL = {
    ("PENDING", "CLAIMED"),
    ("CLAIMED", "PUBLISHED"),
    ("CLAIMED", "PENDING"),
    ("CLAIMED", "DEAD"),
    ("PUBLISHED", "PENDING"),
    ("DEAD", "PENDING"),
}


@dataclass
class Known:
    """What must be true of one event.

    Args:
        event: as it was appended.
        started_at: where its age counts from.
        state: where it stands.
        attempts: claims in this lifecycle.
        failures: attempts that failed or had no answer, in this lifecycle.
        crashes: claims of it alone whose lease ran out, in this lifecycle.
        live: the claim that it is under.
        killed: an operator wants its end.
        released: it was DEAD and an operator has let its key go.
        replays: how often it was replayed.
        steps: transitions that must be on record.
    """

    event: NewEvent
    started_at: datetime
    state: str = "PENDING"
    attempts: int = 0
    failures: int = 0
    crashes: int = 0
    live: Held | None = None
    killed: bool = False
    released: bool = False
    replays: int = 0
    steps: int = 0


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What was true of a claim when it was made.

    Args:
        held: the claim.
        over_at: when its lease is over.
        replays: how often each event had been replayed.
    """

    held: Held
    over_at: datetime
    replays: Mapping[str, int]


class Oracle:
    """Follows a store step by step.

    Args:
        store: the store.
    """

    def __init__(self, store: Adapter) -> None:
        self._store = store
        self._prefix = uuid.uuid4().hex[:8]
        self.known: dict[str, Known] = {}
        self._leases: dict[int, Lease] = {}  # by the identity of the claim

    def name(self, number: int) -> str:
        """Return the id of an event; ids sort by arrival."""
        return f"{self._prefix}-{number:04}"

    def key(self, name: str) -> str:
        """Return an ordering key."""
        return f"{self._prefix}-{name}"

    # --- what happened -------------------------------------------------------------------------

    def claimed(self, held: Held | None, limit: int) -> None:
        """Follow a claim: within its limit, of what may be taken, a prefix of each key."""
        may = self.eligible()
        if held is None:
            assert [] == may, "a claim found nothing"
            return
        assert 0 < len(held.event_ids) <= limit
        assert len(set(held.event_ids)) == len(held.event_ids)
        now = self._store.now()
        for place, event_id in enumerate(held.event_ids):
            assert event_id in may, f"{event_id} must not be taken"
            earlier = [one for one in self._earlier(event_id) if self._is_open(one)]
            assert set(earlier) <= set(held.event_ids[:place]), f"{event_id} overtakes"
            known = self.known[event_id]
            known.state, known.live = "CLAIMED", held
            known.attempts += 1
            known.steps += 1
        self._leases[id(held)] = Lease(
            held=held,
            over_at=now + timedelta(seconds=self._store.terms.lease_seconds),
            replays={name: one.replays for name, one in self.known.items()},
        )

    def may_send(self, held: Held, results: Mapping[str, Result], event_id: str) -> bool:
        """Say whether a relay may send an event now; while its claim is live, order must hold."""
        same_key = [one for one in self._earlier(event_id) if one in held.event_ids]
        if not all(isinstance(results.get(one), Delivered) for one in same_key):
            return False
        if self.known[event_id].live is held:
            before = self._leases[id(held)].replays
            for one in self._earlier(event_id):
                replayed = self.known[one].replays > before[one]
                assert replayed or one in same_key or not self._is_open(one), (
                    f"{event_id} overtakes"
                )
        return True

    def ended(self, held: Held, results: Sequence[Result]) -> None:
        """Follow the end of a claim: it counts for events that are still under it."""
        now = self._store.now()
        for event_id, result in zip(held.event_ids, results, strict=True):
            known = self.known[event_id]
            if known.live is not held:
                continue
            if isinstance(result, Failed | Unknown):
                known.failures += 1
            exhausted = known.failures >= self._store.terms.max_attempts
            tried = isinstance(result, Failed | Unknown)
            if isinstance(result, Delivered):
                self._move(known, "PUBLISHED")
            elif isinstance(result, Rejected) or (
                tried and (exhausted or self._is_old(known, now))
            ):
                self._move(known, "DEAD")
            else:
                self._move(known, "PENDING")

    def reaped(self) -> None:
        """Follow a reaper: leases that are over, then what is killed or too old and due."""
        now = self._store.now()
        for known in self.known.values():
            if known.live is None or self._leases[id(known.live)].over_at > now:
                continue
            alone = len(known.live.event_ids) == 1
            known.crashes += alone
            spent = alone and known.crashes >= (self._store.terms.max_crashes or 0)
            self._move(known, "DEAD" if spent or self._is_old(known, now) else "PENDING")
        shown = self._shown()
        for event_id, known in self.known.items():
            if known.state == "PENDING" and (known.killed or self._is_old(known, now)):
                at = known.event.available_at if not known.attempts else None
                if known.attempts or at is None or at <= now or known.replays:
                    # Due, unless it backs off: only the store knows until when.
                    if shown[event_id].state == "DEAD":
                        released = known.killed
                        known.attempts += 1
                        known.steps += 1
                        self._move(known, "DEAD")
                        known.released = released
                    else:
                        wait = shown[event_id].available_at
                        assert wait is not None, f"{event_id} is not ended"
                        assert wait > now, f"{event_id} is not ended"

    def killed(self, event_id: str) -> None:
        """Follow a kill: it hides an open event, and lets the key of a DEAD one go."""
        known = self.known[event_id]
        if known.state in ("PENDING", "CLAIMED"):
            known.killed = True
        elif known.state == "DEAD":
            known.released = True

    def replayed(self, event_id: str, state: State) -> None:
        """Follow a replay: a new lifecycle, if the event stands where the operator says."""
        known = self.known[event_id]
        if known.state == state:
            self._move(known, "PENDING")
            known.attempts = known.failures = known.crashes = 0
            known.replays += 1
            known.released = False
            known.started_at = max(known.started_at, self._store.now())

    # --- what must be true ---------------------------------------------------------------------

    def check(self) -> None:
        """Demand all of it."""
        shown = self._shown()
        assert list(self.known) == sorted(shown), "each event is there once"
        for event_id, known in self.known.items():
            self._check_event(known, shown[event_id])
        self._check_history()
        assert self.eligible(shown) == list(self._store.retrieve(len(self.known) + 1))

    def _check_event(self, known: Known, record: Record) -> None:
        what = record.event_id
        assert known.state == record.state, what
        assert known.attempts == record.attempts, what
        assert known.event.payload == record.payload, what
        assert (record.claimed_at is not None) == (record.state == "CLAIMED"), what
        assert (record.published_at is not None) == (record.state == "PUBLISHED"), what
        assert (known.live.worker if known.live else None) == record.claimed_by, what
        if record.state == "PENDING" and record.available_at and known.attempts:
            pause = timedelta(seconds=self._store.terms.backoff_seconds)
            assert record.available_at <= self._store.now() + pause, what

    def _check_history(self) -> None:
        stands = dict.fromkeys(self.known, "PENDING")
        counts = dict.fromkeys(self.known, 0)
        for step in self._store.history(list(self.known)):
            assert (step.from_state, step.to_state) in LEGAL, step
            assert stands[step.event_id] == step.from_state, step
            stands[step.event_id] = step.to_state
            counts[step.event_id] += 1
        assert {name: known.state for name, known in self.known.items()} == stands
        assert {name: known.steps for name, known in self.known.items()} == counts

    def eligible(self, shown: Mapping[str, Record] | None = None) -> list[str]:
        """Return what may be taken now, in order."""
        records = shown or self._shown()
        now = self._store.now()
        found: list[str] = []
        for event_id, known in self.known.items():
            wait = records[event_id].available_at
            due = known.state == "PENDING" and not known.killed and (wait is None or wait <= now)
            free = all(one in found for one in self._earlier(event_id) if self._is_open(one))
            if due and free:
                found.append(event_id)
        return found

    def _shown(self) -> dict[str, Record]:
        records = self._store.read(list(self.known))
        assert len({one.event_id for one in records}) == len(records), "an event is shown twice"
        return {record.event_id: record for record in records}

    def _earlier(self, event_id: str) -> list[str]:
        """Return what came before an event with the same key."""
        key = self.known[event_id].event.ordering_key
        if key is None:
            return []
        return [
            one
            for one, known in self.known.items()
            if one < event_id and known.event.ordering_key == key
        ]

    def _is_open(self, event_id: str) -> bool:
        """Say whether an event holds its key."""
        known = self.known[event_id]
        if known.state == "DEAD":
            return known.event.event_type == HOLDING and not known.released
        return known.state == "CLAIMED" or (known.state == "PENDING" and not known.killed)

    def _is_old(self, known: Known, now: datetime) -> bool:
        age = timedelta(seconds=self._store.terms.age_seconds or 0)
        return known.event.event_type == SHORT_LIVED and now - known.started_at >= age

    def _move(self, known: Known, state: str) -> None:
        known.state, known.live = state, None
        known.steps += 1
        if state in ("PUBLISHED", "DEAD"):
            known.killed = False
