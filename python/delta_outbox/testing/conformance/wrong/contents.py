"""Stores that change what an event is made of, or what leaves with it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace

from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.results import Rejected
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.testing.conformance.adapter import Held, NewEvent, Record, Refused
from delta_outbox.testing.conformance.adapter import Message as Sent
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import Row


class HasNoCreatedAt(MemoryStore):
    """Does not say when an event was appended."""

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events without created_at."""
        return [replace(record, created_at=None) for record in super().read(event_ids)]


class MovesCreatedAt(MemoryStore):
    """Dates an event anew with every step."""

    def _step(self, row: Row, to_state: State, reason: Reason) -> None:
        super()._step(row, to_state, reason)
        row.created_at = self.now()


class PrefixesTypes(MemoryStore):
    """Shows event types of its own."""

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events with other types."""
        return [
            replace(record, event_type=f"outbox.{record.event_type}")
            for record in super().read(event_ids)
        ]


class TidiesJson(MemoryStore):
    """Writes JSON payloads its own way."""

    def _persist(self, event: NewEvent) -> None:
        with contextlib.suppress(ValueError):
            event = replace(event, payload=json.dumps(json.loads(event.payload)).encode())
        super()._persist(event)


class ObeysMetadata(MemoryStore):
    """Takes a state from the metadata."""

    def _persist(self, event: NewEvent) -> None:
        super()._persist(event)
        state = (event.metadata or {}).get("state")
        if state:
            self.rows[event.event_id].state = State(state)


class DropsMetadata(MemoryStore):
    """Does not keep metadata."""

    def _persist(self, event: NewEvent) -> None:
        super()._persist(replace(event, metadata=None))


class RefusesEmptyHeaders(MemoryStore):
    """Buries an event whose headers are empty."""

    def _end(self, row: Row, result: EndOfClaim) -> None:
        bad = row.event.headers is not None and not row.event.headers
        super()._end(row, Rejected(error="no headers") if bad else result)


class RenamesEvents(MemoryStore):
    """Sends other ids than it stores."""

    def _message(self, row: Row) -> Sent:
        sent = super()._message(row)
        return replace(sent, event_id=sent.event_id.replace(".", "/"))


class RenumbersAttempts(MemoryStore):
    """Gives every attempt an id of its own."""

    def _message(self, row: Row) -> Sent:
        sent = super()._message(row)
        return replace(sent, event_id=f"{sent.event_id}:{row.counters.attempt}")


class SendsTopics(MemoryStore):
    """Sends the name of a topic as the event type."""

    def _message(self, row: Row) -> Sent:
        sent = super()._message(row)
        return replace(sent, event_type=f"{sent.event_type}.{sent.key or 'all'}")


class SendsText(MemoryStore):
    """Takes every payload for text."""

    def _message(self, row: Row) -> Sent:
        sent = super()._message(row)
        return replace(sent, payload=sent.payload.decode("utf-8", "replace").encode())


class SendsNoKey(MemoryStore):
    """Does not tell the publisher a key."""

    def _message(self, row: Row) -> Sent:
        return replace(super()._message(row), key=None)


class LowersHeaders(MemoryStore):
    """Writes the names of headers in small letters."""

    def _message(self, row: Row) -> Sent:
        sent = super()._message(row)
        return replace(sent, headers={name.lower(): text for name, text in sent.headers.items()})


class DropsTracing(MemoryStore):
    """Keeps trace contexts to itself."""

    def _message(self, row: Row) -> Sent:
        sent = super()._message(row)
        kept = {name: text for name, text in sent.headers.items() if name != "traceparent"}
        return replace(sent, headers=kept)


class SendsMetadata(MemoryStore):
    """Sends metadata as headers."""

    def _message(self, row: Row) -> Sent:
        sent = super()._message(row)
        return replace(sent, headers={**(row.event.metadata or {}), **sent.headers})


class LastContentWins(MemoryStore):
    """Lets a later append change an event."""

    def append(self, events: Sequence[NewEvent]) -> None:
        """Persist events, also over those that are there."""
        for event in events:
            if event.event_id in self.rows:
                self.rows[event.event_id].event = event
            else:
                self._persist(event)


class AppendsInPart(MemoryStore):
    """Persists the events before the one that it refuses."""

    def append(self, events: Sequence[NewEvent]) -> None:
        """Persist events one by one."""
        for event in events:
            super().append([event])


class KeepsCopies(MemoryStore):
    """Takes an id that is appended again for another event."""

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[str, int] = {}

    def append(self, events: Sequence[NewEvent]) -> None:
        """Persist events and count those that were there."""
        for event in events:
            self._copies[event.event_id] = self._copies.get(event.event_id, 0) + 1
        with contextlib.suppress(Refused):
            super().append(events)

    def _all(self, event_ids: Sequence[str]) -> list[str]:
        return [one for one in event_ids for _ in range(self._copies.get(one, 1))]

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return what is eligible, copies too."""
        return self._all(super().retrieve(limit))

    def claim(self, worker: str, limit: int) -> Held | None:
        """Take what is eligible, copies too."""
        held = super().claim(worker, limit)
        return replace(held, event_ids=tuple(self._all(held.event_ids))) if held else None

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events, copies too."""
        return super().read(self._all(event_ids))


class CapitalIds(MemoryStore):
    """Writes a UUID its own way."""

    def append(self, events: Sequence[NewEvent]) -> None:
        """Persist events, a UUID in capitals."""
        super().append(
            [
                replace(one, event_id=one.event_id.upper()) if len(one.event_id) == 36 else one
                for one in events
            ]
        )
