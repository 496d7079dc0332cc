"""The stage of a scenario: short names for events, and hands for what scenarios do often."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from delta_outbox.lifecycle.results import Delivered, Result
from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.adapter import (
    Adapter,
    Capability,
    Held,
    Message,
    NewEvent,
    Record,
    Refused,
    Step,
    Terms,
)

EVERYTHING = 1000  # events; more than a scenario has

Look = Mapping[str, Record]
"""Events by their short names."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a worker has taken, by one claim or several.

    Args:
        held: the claims.
        names: the events, in order, by their short names.
    """

    held: tuple[Held, ...]
    names: tuple[str, ...]


class Stage:
    """A store, and a name of its own for everything a scenario does on it.

    Args:
        store: the store under test.
        name: of the scenario.
    """

    def __init__(self, store: Adapter, name: str) -> None:
        self.store = store
        self._prefix = f"{name}-{uuid.uuid4().hex[:8]}."
        self._names: list[str] = []

    @property
    def terms(self) -> Terms:
        """Return what the store promises."""
        return self.store.terms

    def claims(self, capability: Capability) -> bool:
        """Say whether the store claims a capability.

        Args:
            capability: the capability.
        """
        return capability in self.store.capabilities

    def now(self) -> datetime:
        """Return the time of the store."""
        return self.store.now()

    def key(self, name: str) -> str:
        """Return a key that no other scenario uses.

        Args:
            name: its short name.
        """
        return self._prefix + name

    def append(self, *events: NewEvent) -> bool:
        """Append events under ids of this stage; False if the store refuses.

        Args:
            events: with short names as ids and as ordering keys.
        """
        self._names += [one.event_id for one in events if one.event_id not in self._names]
        try:
            self.store.append(
                [
                    replace(
                        one,
                        event_id=self.key(one.event_id),
                        ordering_key=None
                        if one.ordering_key is None
                        else self.key(one.ordering_key),
                    )
                    for one in events
                ]
            )
        except Refused:
            return False
        return True

    def retrieve(self, limit: int = EVERYTHING) -> tuple[str, ...]:
        """Return what is eligible, by short names.

        Args:
            limit: events at most.
        """
        return self._short(self.store.retrieve(limit))

    def claim(self, worker: str, limit: int = EVERYTHING) -> Taken:
        """Claim once.

        Args:
            worker: name of the relay.
            limit: events at most.
        """
        held = self.store.claim(worker, limit)
        return self._taken([held] if held else [])

    def take(self, worker: str, *wanted: str, limit: int = EVERYTHING) -> Taken:
        """Claim until everything wanted is there, or nothing more comes: a store may give less.

        Args:
            worker: name of the relay.
            wanted: short names.
            limit: events at most, per claim.
        """
        found: list[Held] = []
        for _ in range(len(wanted) + 1):
            held = self.store.claim(worker, limit)
            if held is None:
                break
            found.append(held)
            if set(wanted) <= set(self._taken(found).names):
                break
        return self._taken(found)

    def messages(self, taken: Taken) -> Mapping[str, Message]:
        """Return what a publisher is given.

        Args:
            taken: live claims.
        """
        found = [message for held in taken.held for message in self.store.messages(held)]
        return dict(zip(taken.names, found, strict=True))

    def end(
        self,
        taken: Taken,
        results: Mapping[str, Result] | None = None,
        *,
        otherwise: Result | None = None,
    ) -> None:
        """End claims. A refusal is fine: what counts is what the store shows afterwards.

        Args:
            taken: the claims, live or not.
            results: by short name.
            otherwise: the result of all others; Delivered if left out.
        """
        default = otherwise or Delivered()
        given = results or {}
        for held in taken.held:
            try:
                self.store.end(
                    held, [given.get(name, default) for name in self._short(held.event_ids)]
                )
            except Refused:
                continue

    def deliver(self, worker: str, *wanted: str) -> tuple[str, ...]:
        """Claim and deliver until everything wanted is delivered, or nothing more comes.

        Args:
            worker: name of the relay.
            wanted: short names.

        Returns:
            What was delivered, in order.
        """
        done: tuple[str, ...] = ()
        for _ in range(len(wanted) + 1):
            if set(wanted) <= set(done):
                break
            taken = self.claim(worker)
            if not taken.names:
                break
            self.end(taken)
            done += taken.names
        return done

    def crash(self) -> None:
        """Let a worker be gone for the length of its lease, and somebody notice."""
        self.store.advance(self.terms.lease_seconds)
        self.store.reap()

    def replay(self, *names: str, state: State) -> None:
        """Replay events and see it done.

        Args:
            names: short names.
            state: where they all stand.
        """
        self.store.replay([self.key(name) for name in names], state=state)
        self.store.reap()

    def kill(self, *names: str) -> None:
        """Ask for the end of events.

        Args:
            names: short names.
        """
        self.store.kill([self.key(name) for name in names])

    def look(self, *names: str) -> Look:
        """Return events as they are shown.

        Args:
            names: short names; all of this stage if left out.
        """
        found = self.store.read([self.key(name) for name in names or self._names])
        return dict(zip(self._short([one.event_id for one in found]), found, strict=True))

    def copies(self, name: str) -> Sequence[Record]:
        """Return every record of one event; there should be one.

        Args:
            name: short name.
        """
        return self.store.read([self.key(name)])

    def history(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """Return the steps (from, to) of every event of this stage; nothing without a history."""
        if not self.claims(Capability.HISTORY):
            return {}
        steps: Sequence[Step] = self.store.history([self.key(name) for name in self._names])
        names = self._short([step.event_id for step in steps])
        found: dict[str, tuple[tuple[str, str], ...]] = dict.fromkeys(self._names, ())
        for name, step in zip(names, steps, strict=True):
            found[name] = (*found[name], (step.from_state, step.to_state))
        return found

    def _taken(self, held: Sequence[Held]) -> Taken:
        ids = [event_id for one in held for event_id in one.event_ids]
        return Taken(held=tuple(held), names=self._short(ids))

    def _short(self, event_ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(event_id.removeprefix(self._prefix) for event_id in event_ids)
