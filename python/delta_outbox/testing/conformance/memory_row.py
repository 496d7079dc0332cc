"""What the in-memory store knows of one event."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from delta_outbox.lifecycle.endings import Counters, Ending, Killed
from delta_outbox.lifecycle.policy import DeliveryPolicy, message_key
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.publishers.protocol import Event
from delta_outbox.testing.conformance.adapter import Message, NewEvent, Record


@dataclass(frozen=True, kw_only=True)
class LiveClaim:
    """Under which claim an event is.

    Args:
        claim_id: its identity.
        worker: who holds it.
        at: since when.
        until: when its lease is over.
        size: events that it began with.
    """

    claim_id: str
    worker: str
    at: datetime
    until: datetime
    size: int


@dataclass(kw_only=True)
class Row:
    """An event and where it stands.

    Args:
        event: as it was appended.
        arrival: its place in the order of arrival.
        created_at: when it was persisted.
        started_at: where its age counts from.
        available_at: when it may be claimed.
    """

    event: NewEvent
    arrival: int
    created_at: datetime
    started_at: datetime
    available_at: datetime | None
    state: State = State.PENDING
    reason: Reason | None = None
    lifecycle: int = 0
    counters: Counters = field(default_factory=Counters)
    claim: LiveClaim | None = None
    kill: Killed | None = None
    last_error: str | None = None
    published_at: datetime | None = None

    @classmethod
    def new(cls, event: NewEvent, *, arrival: int, now: datetime) -> Self:
        """Return an event that has just arrived.

        Args:
            event: as it was appended.
            arrival: its place in the order of arrival.
            now: the current instant.
        """
        return cls(
            event=event,
            arrival=arrival,
            created_at=now,
            started_at=max(now, event.available_at or now),
            available_at=event.available_at,
        )

    def take(self, ending: Ending, *, now: datetime) -> None:
        """Take what the end of a claim says; the state itself is the store's to write down.

        Args:
            ending: as it was decided.
            now: the current instant.
        """
        self.counters = ending.counters
        self.claim = None
        self.available_at = ending.available_at
        self.last_error = ending.error if ending.error is not None else self.last_error
        if ending.to_state is State.PUBLISHED:
            self.published_at = now
        if ending.to_state is not State.PENDING:
            self.kill = None

    def begin_anew(self, *, now: datetime) -> None:
        """Begin a new lifecycle; the state itself is the store's to write down.

        Args:
            now: the current instant.
        """
        self.lifecycle += 1
        self.counters = Counters()
        self.available_at = None
        self.published_at = None
        self.started_at = max(self.started_at, now)

    def delivery(self) -> dict[str, object]:
        """Return the columns of `claims.DELIVERIES`."""
        return {
            "event_id": self.event.event_id,
            "arrival": self.arrival,
            "event_type": self.event.event_type,
            "ordering_key": self.event.ordering_key,
            "partition_key": self.event.partition_key,
            "created_at": self.created_at,
            "ordinal": None,
            "ambiguous": False,
            "destination": "default",
            "lifecycle": self.lifecycle,
            "attempts": self.counters.attempt,
            "publish_attempts": self.counters.publish_attempts,
            "crashes": self.counters.crashes,
            "suspect": self.counters.suspect,
            "available_at": self.available_at,
            "started_at": self.started_at,
            "kill_command_id": self.kill.command_id if self.kill else None,
            "kill_actor": self.kill.actor if self.kill else None,
            "kill_reason": self.kill.reason if self.kill else None,
            "payload_bytes": len(self.event.payload),
            "blocks": self.state is not State.PENDING,
        }

    def record(self) -> Record:
        """Return the event as it is shown."""
        event, claim = self.event, self.claim
        return Record(
            event_id=event.event_id,
            event_type=event.event_type,
            payload=event.payload,
            state=str(self.state),
            created_at=self.created_at,
            ordering_key=event.ordering_key,
            partition_key=event.partition_key,
            headers=event.headers,
            metadata=event.metadata,
            attempts=self.counters.attempt,
            last_error=self.last_error,
            available_at=self.available_at,
            claimed_at=claim.at if claim else None,
            claimed_by=claim.worker if claim else None,
            published_at=self.published_at,
        )

    def message(self, policy: DeliveryPolicy) -> Message:
        """Return what a publisher is given.

        Args:
            policy: the policy of the event.
        """
        given = self.event
        event = Event(
            event_id=given.event_id,
            event_type=given.event_type,
            key=message_key(
                policy, ordering_key=given.ordering_key, partition_key=given.partition_key
            ),
            headers=given.headers,
            payload=given.payload,
            created_at=self.created_at,
            lifecycle=self.lifecycle,
        )
        return Message(
            event_id=event.event_id,
            event_type=event.event_type,
            payload=event.payload,
            headers=event.transport_headers(),
            key=event.key,
        )
