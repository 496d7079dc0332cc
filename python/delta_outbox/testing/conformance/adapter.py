"""What a store must offer to be tested: an adapter of a few methods, and the words it speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from delta_outbox.lifecycle.results import Result
from delta_outbox.lifecycle.states import State

EVENT: Final = "conformance.event"
"""The event type of the kit."""

SHORT_LIVED: Final = "conformance.short"
"""The event type of events that get too old after `Terms.age_seconds`."""


class Capability(StrEnum):
    """What the specification leaves to a store. What it does not claim is not asked of it, and
    the report says so.
    """

    ORDERING = "ordering"  # events of an ordering key are taken in order
    LEASES = "leases"  # claims end by time
    CRASH_BUDGET = "crash budget"  # an event that takes its worker down every time ends in DEAD
    AGE = "age"  # events get too old
    REPLAY = "replay"
    KILL = "kill"
    HISTORY = "history"  # every transition is on record
    LOGS = "logs"  # its records are append-only; `tamper` attacks them


class Change(StrEnum):
    """A way to rewrite a log."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    MERGE = "MERGE"
    INSERT_OVERWRITE = "INSERT OVERWRITE"
    TRUNCATE = "TRUNCATE"


class Noticed(StrEnum):
    """What became of an attempt to rewrite a log."""

    REFUSED = "refused"
    FOUND = "found by the next check"
    NO = "not noticed"


class Refused(Exception):
    """The store refuses a request and has changed nothing."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a store promises for the event types of the kit.

    Args:
        lease_seconds: after so many seconds `reap` ends a claim, all margins included.
        backoff_seconds: after so many seconds at most a failed event is due again.
        max_attempts: failed attempts after which an event is DEAD, at least 2.
        max_crashes: claims of one event alone that end by their lease before it is DEAD.
        age_seconds: age at which an event of type `SHORT_LIVED` is ended by `reap`.
    """

    lease_seconds: float
    backoff_seconds: float
    max_attempts: int
    max_crashes: int | None = None
    age_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class NewEvent:
    """An event as a producer appends it; the fields are those of the specification."""

    event_id: str
    event_type: str = EVENT
    payload: bytes = b"{}"
    ordering_key: str | None = None
    partition_key: str | None = None
    headers: Mapping[str, str] | None = None
    metadata: Mapping[str, str] | None = None
    available_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """An event as the store shows it for inspection; the fields are those of the specification."""

    event_id: str
    event_type: str
    payload: bytes
    state: str
    created_at: datetime | None
    ordering_key: str | None = None
    partition_key: str | None = None
    headers: Mapping[str, str | None] | None = None
    metadata: Mapping[str, str | None] | None = None
    attempts: int = 0
    last_error: str | None = None
    available_at: datetime | None = None
    claimed_at: datetime | None = None
    claimed_by: str | None = None
    published_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """A transition on record."""

    event_id: str
    from_state: str
    to_state: str


@dataclass(frozen=True, kw_only=True)
class Message:
    """What a publisher is given of an event.

    Args:
        event_id: identity of the event.
        event_type: as appended.
        payload: the bytes to deliver.
        headers: what consumers get beside it; a store may add names of its own.
        key: by which the destination routes.
    """

    event_id: str
    event_type: str
    payload: bytes
    headers: Mapping[str, str | None]
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Held:
    """A claim.

    Args:
        worker: who holds it.
        event_ids: what it holds, in the order in which it is to be sent.
        token: whatever the store needs to know the claim again.
    """

    worker: str
    event_ids: tuple[str, ...]
    token: object


class Adapter(Protocol):
    """A store under test. The kit plays producers, workers, publishers, operators and the clock."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return what the store claims. Methods that belong to another are never called."""

    @property
    def terms(self) -> Terms:
        """Return what the store promises for the event types of the kit."""

    def now(self) -> datetime:
        """Return the time of the store: aware, UTC."""

    def advance(self, seconds: float) -> None:
        """Let time pass for the store.

        Args:
            seconds: how much.
        """

    def append(self, events: Sequence[NewEvent]) -> None:
        """Persist events in this order, all or nothing.

        Args:
            events: what a producer hands over.

        Raises:
            Refused: the store does not want them; nothing of the call was persisted.
        """

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return the ids of what is eligible now, in the order in which it would be taken.

        Args:
            limit: events at most.
        """

    def claim(self, worker: str, limit: int) -> Held | None:
        """Take what is eligible; None if there is nothing. Several threads may call it at once.

        Args:
            worker: name of the relay; two that live one after the other may share it.
            limit: events at most.
        """

    def messages(self, held: Held) -> Sequence[Message]:
        """Return what a publisher is given for a claim, in order.

        Args:
            held: a live claim.
        """

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """End a claim by what the publisher said. Several threads may call it at once.

        Args:
            held: the claim, perhaps over long ago.
            results: one per event, in order.

        Raises:
            Refused: the claim is no longer live.
        """

    def reap(self) -> None:
        """Do what somebody does between batches: end claims whose lease is over, apply what
        operators have asked for, end what is too old.
        """

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Ask as an operator that events are delivered again; `reap` may be needed to see it.

        Args:
            event_ids: the events.
            state: where they all stand, PUBLISHED or DEAD.
        """

    def kill(self, event_ids: Sequence[str]) -> None:
        """Ask as an operator that events end undelivered; `reap` may be needed to see it.

        Args:
            event_ids: the events.
        """

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events for inspection; what does not exist is left out.

        Args:
            event_ids: the events.
        """

    def history(self, event_ids: Sequence[str]) -> Sequence[Step]:
        """Return the transitions of events; those of one event in order.

        Args:
            event_ids: the events.
        """

    def reopen(self) -> None:
        """End the process of the store and start it again, as far as that is possible: only what
        is durable is still there.
        """

    def tamper(self) -> Mapping[Change, Noticed]:
        """Try every change of what is on record, and say what became of it.

        It is the last call on this store.
        """


class Stores(Protocol):
    """Where the stores under test come from. The kit makes one instance without arguments."""

    name: str

    def fresh(self) -> Adapter:
        """Return a store, new or used, in which nothing is open. Called once per scenario."""

    def close(self) -> None:
        """Release everything."""
