"""The protocol between the relay and a publisher: events in, one result per event out.

A publisher makes one attempt per event and says what it knows. It never retries on its own beyond
that attempt, never alters payload or headers, and never answers for an event that it did not get.
Everything here can be pickled.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, Protocol, overload

from delta_outbox.lifecycle.results import Delivered, Result

EVENT_ID_HEADER: Final = "outbox-event-id"
EVENT_TYPE_HEADER: Final = "outbox-event-type"
LIFECYCLE_HEADER: Final = "outbox-lifecycle"
KEY_HEADER: Final = "outbox-key"  # only where a transport has no other place for the key
RESERVED_HEADERS: Final = (EVENT_ID_HEADER, EVENT_TYPE_HEADER, LIFECYCLE_HEADER)


_BROKEN: Final = re.compile(r"[\r\n\0\ud800-\udfff]")


def header_fault(headers: Mapping[str, str | None] | None) -> str | None:
    """Return why no text protocol can carry the headers, None if it can.

    One of them would end its line, or has no form in UTF-8. `append` refuses such headers; rows
    that a producer inserts by itself may have them.

    Args:
        headers: of an event.
    """
    for name, value in (headers or {}).items():
        if _BROKEN.search(name) or (value and _BROKEN.search(value)):
            return f"the header {name!r} holds CR, LF or NUL, or is not UTF-8"
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One delivery of one event, as a publisher sees it.

    Args:
        event_id: identity of the event, the same for every attempt and every replay.
        event_type: dotted name, for example `order.created`.
        key: message key, chosen by the relay: ordering_key under strict ordering, else
            partition_key, else ordering_key.
        ordering_key: scope of order, as appended.
        partition_key: hint of the producer, as appended.
        headers: the producer's headers, untouched; values may be None.
        payload: the bytes to deliver, untouched.
        created_at: when the producer made the event (aware, UTC).
        attempt: number of this claim within the lifecycle, from 1.
        lifecycle: 0, and one more per replay.
        claim_id: the claim under which this attempt is made.
        route: where to: topic, subject, path; rendered from the policy by the relay.
    """

    event_id: str
    event_type: str
    key: str | None = None
    ordering_key: str | None = None
    partition_key: str | None = None
    headers: Mapping[str, str | None] | None = None
    payload: bytes
    created_at: datetime
    attempt: int = 1
    lifecycle: int = 0
    claim_id: str = ""
    route: str = ""

    @property
    def delivery_id(self) -> str:
        """Return the identity on the wire: a retry repeats it, a replay has a new one."""
        return self.event_id if self.lifecycle == 0 else f"{self.event_id}:{self.lifecycle}"

    @property
    def ordered_key(self) -> str | None:
        """Return the key whose events must stay in order, None if the event is in no order.

        Only a key that is the ordering key is one of order; any other merely places the event.
        """
        return self.key if self.key == self.ordering_key else None

    def transport_headers(self) -> dict[str, str | None]:
        """Return the producer's headers and ours; a producer's header of our name wins."""
        ours: dict[str, str | None] = {
            EVENT_ID_HEADER: self.event_id,
            EVENT_TYPE_HEADER: self.event_type,
            LIFECYCLE_HEADER: str(self.lifecycle),
        }
        if self.headers:
            ours.update(self.headers)
        return ours


class EventBatch(Sequence[Event]):
    """Events of one publish call, in the order in which they must be sent, and its deadline.

    Args:
        events: the events; those of one key are in their order.
        deadline: `time.monotonic()` seconds of this process after which nothing may be sent.
        destination: the name under which the settings describe it.
        producer_slot: who sends. Never are two calls of a destination under way from one slot, and
            there are few of them, so that it can be the name of a broker's transactions.
    """

    __slots__ = ("_events", "deadline", "destination", "producer_slot")

    def __init__(
        self,
        events: Iterable[Event],
        *,
        deadline: float,
        destination: str = "",
        producer_slot: str = "",
    ) -> None:
        self._events = tuple(events)
        self.deadline = deadline
        self.destination = destination
        self.producer_slot = producer_slot

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> EventBatch: ...
    def __getitem__(self, index: int | slice) -> Event | EventBatch:
        if isinstance(index, slice):
            return EventBatch(
                self._events[index],
                deadline=self.deadline,
                destination=self.destination,
                producer_slot=self.producer_slot,
            )
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __repr__(self) -> str:
        return f"EventBatch({len(self._events)} events, deadline={self.deadline!r})"

    def remaining_seconds(self) -> float:
        """Return the seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass(frozen=True, kw_only=True, slots=True)
class UnresolvedClaim:
    """A claim of which nobody can say any more what was delivered, but perhaps the destination.

    Args:
        claim_id: as the events of its calls had it.
        destination: as the batches of its calls had it.
        since: nothing of it was sent before (aware, UTC; what clocks may differ by is left off).
    """

    claim_id: str
    destination: str
    since: datetime


Recovered = Mapping[str, Mapping[str, Delivered]]
"""What of each claim was delivered: claim_id to delivery_id to its result."""

Recover = Callable[[Sequence[UnresolvedClaim], float], Recovered]
"""Given claims and seconds: say what was delivered and see to it that nothing more will be."""


class Publisher(Protocol):
    """A destination. One instance is used by one thread, opened once and closed once.

    A class may also offer, as class methods, `validate(settings)`, which raises a sentence about
    bad settings without connecting, and `probe(settings, timeout)`, which raises a sentence if
    the destination does not answer within `timeout` seconds. The relay calls them before it
    claims anything. With a class variable `cloudevents`, a `Transport`, policies may have the
    relay turn events into CloudEvents before it calls; without one they may not.

    Where a destination knows for certain what was delivered under a claim, the class may offer
    `recovery(settings)`, which returns a `Recover`, or None if these settings do not ask for it.
    The relay calls that function before it ends a delivery whose result is unknown, always
    after the deadline of its calls; it raises ConnectionError as long as it cannot say.
    """

    ordered: ClassVar[bool] = False
    """True: within a call, no later event of a key is delivered if an earlier one was not.

    Without it no call holds two events of one key.
    """

    def open(self, settings: Mapping[str, object]) -> None:
        """Prepare for publishing.

        Args:
            settings: the table `[publishers.<destination>]` without `type`.
        """

    def publish(self, events: EventBatch) -> list[Result]:
        """Attempt every event once and return one result per event, in the same order.

        Args:
            events: what to send; nothing is sent after `events.deadline`.
        """

    def close(self) -> None:
        """Release what `open` took; send nothing."""
