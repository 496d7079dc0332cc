"""The reference store: an outbox in memory, by the same pure rules as the one on Delta."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from delta_outbox.lifecycle.endings import (
    Counters,
    Ending,
    EndOfClaim,
    Expired,
    Killed,
    LeaseExpired,
    counters_at_claim,
    decide_ending,
    is_expired,
)
from delta_outbox.lifecycle.order_scopes import scope_of
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet
from delta_outbox.lifecycle.policy_columns import OnDead
from delta_outbox.lifecycle.results import Result
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.testing.conformance.adapter import (
    Capability,
    Change,
    Held,
    Message,
    NewEvent,
    Noticed,
    Record,
    Refused,
    Step,
    Terms,
)
from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.testing.conformance.journal import Journal
from delta_outbox.testing.conformance.memory_policies import POLICIES, TERMS, cut
from delta_outbox.testing.conformance.memory_row import LiveClaim, Row


class MemoryStore:
    """An outbox in memory. Its steps are whole: a lock is around each of them.

    What a wrong store gets wrong is a method of its own here, so that it is one defect.

    Args:
        policies: the delivery policies; those of the kit if left out.
        clock: the time.
        jitter: gives a random number in [0, 1) for back-offs.
    """

    capabilities: frozenset[Capability] = frozenset(Capability)
    terms: Terms = TERMS

    def __init__(
        self,
        *,
        policies: PolicySet = POLICIES,
        clock: ManualClock | None = None,
        jitter: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.clock = clock or ManualClock()
        self.rows: dict[str, Row] = {}  # in the order of arrival
        self.journal = Journal()
        self._policies = policies
        self._jitter = jitter
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()

    # --- time ----------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the time of the store."""
        return self.clock.now()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.sleep(seconds)

    # --- producing -----------------------------------------------------------------------------

    def append(self, events: Sequence[NewEvent]) -> None:
        """Persist events, all or nothing; what is there already is not appended again."""
        with self._lock:
            new: dict[str, NewEvent] = {}
            for event in events:
                row = self.rows.get(event.event_id)
                known = row.event if row else new.get(event.event_id)
                if known is not None and known != event:
                    raise Refused(f"{event.event_id} has other content")
                if known is None:
                    new[event.event_id] = event
            for event in new.values():
                self._persist(event)

    def _persist(self, event: NewEvent) -> None:
        self.rows[event.event_id] = Row.new(event, arrival=next(self._numbers), now=self.now())

    # --- processing ----------------------------------------------------------------------------

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return the ids of what is eligible now, in order."""
        with self._lock:
            return [row.event.event_id for row in self._eligible()[:limit]]

    def claim(self, worker: str, limit: int) -> Held | None:
        """Take what is eligible; suspects only among themselves, and few of them."""
        with self._lock:
            rows = self._cut(self._eligible(), limit)
            return self._begin(rows, worker) if rows else None

    def messages(self, held: Held) -> Sequence[Message]:
        """Return what a publisher is given."""
        return [self._message(self.rows[event_id]) for event_id in held.event_ids]

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """End a claim; an event that is no longer under it stays as it is."""
        with self._lock:
            for event_id, result in zip(held.event_ids, results, strict=True):
                row = self.rows[event_id]
                if self._is_live(row, held):
                    self._end(row, result)

    def reap(self) -> None:
        """End claims whose lease is over, and what is killed or too old."""
        with self._lock:
            for row in self.rows.values():
                if row.claim is not None and self._is_over(row.claim):
                    self._end(row, LeaseExpired())
            for row in self.rows.values():
                if row.state is State.PENDING and self._is_due(row):
                    result = self._end_unsent(row)
                    if result is not None:
                        self._begin([row], "reaper")
                        self._end(row, result)

    def _eligible(self) -> list[Row]:
        """Return what is due and blocked by nothing, as macros/eligibility/held_by_order.sql."""
        found = []
        blocked: set[str | None] = set()
        for row in self.rows.values():
            scope = self._scope(row)
            if row.state is State.PENDING and not self._is_hidden(row) and self._is_due(row):
                if scope is None or scope not in blocked:
                    found.append(row)
            elif self._holds_up(row):
                blocked.add(scope)
        return found

    def _is_due(self, row: Row) -> bool:
        return row.available_at is None or row.available_at <= self.now()

    def _is_hidden(self, row: Row) -> bool:
        return row.kill is not None

    def _holds_up(self, row: Row) -> bool:
        if row.state is State.CLAIMED:
            return True
        if row.state is State.DEAD:
            return self._policy(row).on_dead is OnDead.HOLD and row.reason is not Reason.OPERATOR
        return row.state is State.PENDING and row.kill is None

    def _scope(self, row: Row) -> str | None:
        return scope_of(
            self._policy(row), ordering_key=row.event.ordering_key, destination="default"
        )

    def _policy(self, row: Row) -> DeliveryPolicy:
        return self._policies.match(row.event.event_type)

    def _cut(self, rows: Sequence[Row], limit: int) -> Sequence[Row]:
        return [self.rows[event_id] for event_id in cut(rows, self._policies, limit)]

    def _begin(self, rows: Sequence[Row], worker: str) -> Held:
        claim_id = f"claim-{next(self._numbers)}"
        now = self.now()
        for row in rows:
            lease = timedelta(seconds=self._policy(row).lease_seconds)
            row.claim = LiveClaim(
                claim_id=claim_id, worker=worker, at=now, until=now + lease, size=len(rows)
            )
            row.counters = self._counted(row.counters)
            self._step(row, State.CLAIMED, Reason.CLAIMED)
        return Held(
            worker=worker, event_ids=tuple(row.event.event_id for row in rows), token=claim_id
        )

    def _counted(self, counters: Counters) -> Counters:
        return counters_at_claim(counters)

    def _is_live(self, row: Row, held: Held) -> bool:
        return row.claim is not None and row.claim.claim_id == held.token

    def _is_over(self, claim: LiveClaim) -> bool:
        return claim.until <= self.now()

    def _end_unsent(self, row: Row) -> Expired | Killed | None:
        """Say how an event ends that waits and is not to be sent; None if it is."""
        if row.kill is not None:
            return row.kill
        policy = self._policy(row)
        too_old = is_expired(policy, started_at=row.started_at, now=self.now())
        return Expired() if too_old else None

    def _end(self, row: Row, result: EndOfClaim) -> None:
        self._apply(row, self._decide(row, result))

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        return decide_ending(
            counters=row.counters,
            result=result,
            claim_size=row.claim.size if row.claim else 1,
            policy=self._policy(row),
            now=self.now(),
            started_at=row.started_at,
            jitter=self._jitter(),
        )

    def _apply(self, row: Row, ending: Ending) -> None:
        row.take(ending, now=self.now())
        self._step(row, ending.to_state, ending.reason)

    def _step(self, row: Row, to_state: State, reason: Reason) -> None:
        self.journal.append(
            Step(event_id=row.event.event_id, from_state=str(row.state), to_state=str(to_state))
        )
        row.state, row.reason = to_state, reason

    def _message(self, row: Row) -> Message:
        return row.message(self._policy(row))

    # --- operating -----------------------------------------------------------------------------

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Begin a new lifecycle; an event that stands elsewhere stays as it is."""
        with self._lock:
            for event_id in event_ids:
                row = self.rows[event_id]
                if row.state is state and state in (State.PUBLISHED, State.DEAD):
                    self._replay(row)

    def _replay(self, row: Row) -> None:
        row.begin_anew(now=self.now())
        self._step(row, State.PENDING, Reason.REPLAYED)

    def kill(self, event_ids: Sequence[str]) -> None:
        """Hide events at once; `reap` ends each by a claim of its own when it is due."""
        with self._lock:
            for event_id in event_ids:
                row = self.rows[event_id]
                if row.state is State.DEAD:
                    row.reason = Reason.OPERATOR  # lets its key go
                elif row.state is not State.PUBLISHED:
                    row.kill = Killed(actor="operator", reason="killed", command_id="kill")

    # --- looking -------------------------------------------------------------------------------

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events as they stand."""
        with self._lock:
            return [self.rows[one].record() for one in event_ids if one in self.rows]

    def history(self, event_ids: Sequence[str]) -> Sequence[Step]:
        """Return the transitions of events."""
        wanted = set(event_ids)
        return [step for step in self.journal.steps if step.event_id in wanted]

    def reopen(self) -> None:
        """Lose what is not durable: nothing, for the memory stands for a disk here."""
        self.rows = {name: replace(row) for name, row in self.rows.items()}

    def tamper(self) -> Mapping[Change, Noticed]:
        """Rewrite the record of transitions in every way."""
        return self.journal.tamper()


class MemoryStores:
    """A new store for every scenario.

    Args:
        kind: of store; the reference if left out.
        name: for the report.
    """

    def __init__(self, kind: type[MemoryStore] = MemoryStore, name: str = "memory") -> None:
        self.name = name
        self._kind = kind

    def fresh(self) -> MemoryStore:
        """Return an empty store."""
        return self._kind()

    def close(self) -> None:
        """Have nothing to release."""
