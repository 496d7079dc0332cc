"""A model of an outbox: relays, producers, operators and a clock, in any order, with crashes.

Every rule is one step of somebody; between any two of them a relay may die, or be frozen and come
back. What the model knows it has from what it did and what it was told, never from the store's
own decisions; after every step the store must show what follows from that (`outbox_oracle`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.testing.outbox_oracle import HOLDING, KEYS, Known, Oracle

from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.adapter import EVENT, SHORT_LIVED, Adapter, Held, NewEvent

RELAYS = ("relay-1", "relay-2", "relay-3")
ANSWERS = st.sampled_from(
    [
        Delivered(),
        Delivered(),
        Failed(error="refused"),
        Unknown(error="no answer"),
        Rejected(error="never"),
        NotSent(),
    ]
)
SECONDS = st.sampled_from([0.5, 1.0, 5.0, 31.0, 700.0])
NEW_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        st.sampled_from([EVENT, EVENT, SHORT_LIVED, HOLDING]),
        st.sampled_from([0.0, 0.0, 0.0, 10.0]),
    ),
    min_size=1,
    max_size=3,
)
FINAL = st.sampled_from([State.PUBLISHED, State.DEAD])


@dataclass
class Worker:
    """What a relay has in its memory; it is gone when the relay dies.

    Args:
        held: its claim.
        results: what the publisher said, as far as it was asked.
    """

    held: Held
    results: dict[str, Result] = field(default_factory=dict)


class OutboxModel(RuleBasedStateMachine):
    """The steps. A subclass opens the store."""

    open_store: ClassVar[Callable[[], Adapter]]
    steps: ClassVar[int] = 0  # of all runs
    most_events: ClassVar[int] = 12
    second: ClassVar[float] = 1.0  # of the model, in seconds of the store

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).open_store()
        self.oracle = Oracle(self.store)
        self.workers: dict[str, Worker] = {}
        self.frozen: list[Worker] = []

    @initialize()
    def begin(self) -> None:
        self.append([("a", EVENT, 0.0), ("a", EVENT, 0.0), (None, EVENT, 0.0)])

    # --- producers -----------------------------------------------------------------------------

    @precondition(lambda self: len(self.oracle.known) < self.most_events)
    @rule(given=NEW_EVENTS)
    def append(self, given: list[tuple[str | None, str, float]]) -> None:
        events: list[NewEvent] = []
        for key, event_type, delay in given:
            number = len(self.oracle.known) + len(events)
            available_at = self.store.now() + timedelta(seconds=delay) if delay else None
            events.append(
                NewEvent(
                    event_id=self.oracle.name(number),
                    event_type=event_type,
                    ordering_key=None if key is None else self.oracle.key(key),
                    payload=b"%d" % number,
                    available_at=available_at,
                )
            )
        self.store.append(events)
        now = self.store.now()
        for event in events:
            self.oracle.known[event.event_id] = Known(
                event=event, started_at=max(now, event.available_at or now)
            )

    @rule(data=st.data())
    def append_again(self, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from(list(self.oracle.known.values())))
        self.store.append([known.event])

    # --- relays --------------------------------------------------------------------------------

    @precondition(lambda self: len(self.workers) < len(RELAYS))
    @rule(data=st.data(), limit=st.integers(1, 5))
    def claim(self, data: st.DataObject, limit: int) -> None:
        name = data.draw(st.sampled_from([one for one in RELAYS if one not in self.workers]))
        held = self.store.claim(name, limit)
        self.oracle.claimed(held, limit)
        if held is not None:
            self.workers[name] = Worker(held)

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), answer=ANSWERS)
    def send(self, data: st.DataObject, answer: Result) -> None:
        worker = self.workers[data.draw(st.sampled_from(sorted(self.workers)))]
        unsent = [one for one in worker.held.event_ids if one not in worker.results]
        if unsent:
            may_go = self.oracle.may_send(worker.held, worker.results, unsent[0])
            worker.results[unsent[0]] = answer if may_go else NotSent()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), answer=ANSWERS)
    def send_all(self, data: st.DataObject, answer: Result) -> None:
        worker = self.workers[data.draw(st.sampled_from(sorted(self.workers)))]
        for event_id in worker.held.event_ids:
            if event_id not in worker.results:
                may_go = self.oracle.may_send(worker.held, worker.results, event_id)
                worker.results[event_id] = answer if may_go else NotSent()

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.workers)))
        self._end(self.workers.pop(name))

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.workers)))
        del self.workers[name]
        self.forget(name)

    def forget(self, name: str) -> None:
        """Drop what the store keeps in its memory for a relay; a subclass may have to."""

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def freeze(self, data: st.DataObject) -> None:
        self.frozen.append(self.workers.pop(data.draw(st.sampled_from(sorted(self.workers)))))

    @precondition(lambda self: self.frozen)
    @rule(data=st.data())
    def thaw_and_end(self, data: st.DataObject) -> None:
        # It stays in the list: it may say the same once more.
        self._end(data.draw(st.sampled_from(self.frozen)))

    def _end(self, worker: Worker) -> None:
        results = [worker.results.get(one, NotSent()) for one in worker.held.event_ids]
        self.store.end(worker.held, results)
        self.oracle.ended(worker.held, results)

    # --- everybody else ------------------------------------------------------------------------

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.store.advance(seconds * self.second)

    @rule()
    def reap(self) -> None:
        self.store.reap()
        self.oracle.reaped()

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        event_id = data.draw(st.sampled_from(list(self.oracle.known)))
        self.store.kill([event_id])
        self.oracle.killed(event_id)

    @rule(data=st.data(), state=FINAL)
    def replay(self, data: st.DataObject, state: State) -> None:
        event_id = data.draw(st.sampled_from(list(self.oracle.known)))
        self.store.replay([event_id], state=state)
        self.oracle.replayed(event_id, state)

    @rule()
    def restart(self) -> None:
        self.store.reopen()

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        type(self).steps += 1
        self.oracle.check()
