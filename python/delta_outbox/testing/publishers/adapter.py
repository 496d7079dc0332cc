"""What a publisher's author writes for the kit: the destination as its own consumers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from delta_outbox.publishers.protocol import Event, Publisher
from delta_outbox.publishers.registry import is_ordered


class Capability(StrEnum):
    """What a publisher or its adapter may leave out. What is not there is not asked, and the
    report says so.
    """

    ACKNOWLEDGED = "acknowledged"  # the destination answers, per event or for a call
    KEYS = "carries_keys"  # consumers see the key
    ORDERED = "ordered"  # a call may hold several events of a key
    VALIDATE = "validate"
    PROBE = "probe"
    STOP = "stop, start"
    FREEZE = "freeze, thaw"
    LOSE = "lose_answer"
    REFUSED = "refused"
    FAILING = "failing"


class Content(StrEnum):
    """What a transport may be unable to carry: the publisher must reject it, never alter it."""

    EMPTY_PAYLOAD = "an empty payload"
    BINARY_PAYLOAD = "every byte"
    LARGE_PAYLOAD = "a large payload"
    UNICODE_HEADERS = "unicode in values of headers"
    EMPTY_HEADER = "an empty value of a header"
    NO_VALUE = "a header without a value"
    MANY_HEADERS = "many headers"


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A message as a consumer of the destination got it.

    Args:
        delivery_id: by which consumers de-duplicate; where the transport has no id of its own,
            what the headers say (`delivery_id_of`).
        payload: the bytes.
        headers: all that consumers see of headers, ours among them.
        key: the key, where the transport carries one.
    """

    delivery_id: str
    payload: bytes
    headers: Mapping[str, str | None]
    key: str | None = None


class Adapter:
    """A publisher under test and its destination. Write a subclass; `TcpAdapter` does most of it.

    Needed are `publisher`, `settings` and `received`. Each of the other methods may be left
    unwritten: what needs it is not asked then.

    Attributes:
        publisher: the class, importable by its name.
        settings: good settings, as `open` gets them.
        route: of every event.
        answer_seconds: a destination that is well has answered a call, and shows it, by then.
        silence_seconds: deadline of calls to a destination that does not answer.
        settle_seconds: what arrives without being expected has arrived by then.
        grace_seconds: how much later than its deadline a call may end.
        large_bytes: size of the large payload.
        many_headers: how many headers are many.
        acknowledged: False: the destination acknowledges nothing, and the documentation says so.
        carries_keys: False: consumers do not see the key.
        rejects: what the transport cannot carry, as documented.
    """

    publisher: type[Publisher]
    settings: Mapping[str, object]
    route: str = "kit"
    answer_seconds: float = 10.0
    silence_seconds: float = 2.0
    settle_seconds: float = 0.3
    grace_seconds: float = 2.0
    large_bytes: int = 128 * 1024
    many_headers: int = 100
    acknowledged: bool = True
    carries_keys: bool = True
    rejects: frozenset[Content] = frozenset()

    def received(self) -> Sequence[Arrival]:
        """Return all that has arrived since the adapter was made, in order of arrival per key.

        It is read from the destination, not from the publisher, and is not called while the
        destination is stopped or frozen. What came before a `stop` may be gone after `start`.
        """
        raise TypeError(
            f"{type(self).__name__}: an adapter needs `received`, which reads what has arrived."
        )

    def expected_headers(self, event: Event) -> Mapping[str, str | None]:
        """Return the headers that a consumer sees of an event, as documented.

        Args:
            event: with any headers.
        """
        return event.transport_headers()

    def stop(self) -> None:
        """End the destination: connections break, and nobody listens."""

    def start(self) -> None:
        """Start it again at the same address, and return when it answers."""

    def freeze(self) -> None:
        """Let the destination keep its connections, and take and answer nothing (SIGSTOP)."""

    def thaw(self) -> None:
        """Let a frozen destination go on."""

    def lose_answer(self) -> None:
        """Break the connection when the destination answers the next large message, once."""

    def has_lost_answer(self) -> bool:
        """Return whether an answer was lost since `lose_answer`: otherwise nothing was tried."""
        return True

    def refused(self, event: Event) -> Event:
        """Return the event so that the destination refuses it for good.

        Args:
            event: that it would take.
        """
        return event

    def failing(self, event: Event) -> Event:
        """Return the event so that the destination does not take it for now.

        Args:
            event: that it would take.
        """
        return event

    def connections(self) -> int:
        """Return how many connections were made so far: `validate` must make none."""
        return 0

    def close(self) -> None:
        """Release everything; the kit calls it only where it made the adapter."""


_METHODS: Final = {
    Capability.STOP: ("stop", "start"),
    Capability.FREEZE: ("freeze", "thaw"),
    Capability.LOSE: ("lose_answer",),
    Capability.REFUSED: ("refused",),
    Capability.FAILING: ("failing",),
}


def capabilities(adapter: Adapter) -> frozenset[Capability]:
    """Return what can be asked of a publisher through an adapter.

    Args:
        adapter: of the publisher.
    """
    publisher, kind = adapter.publisher, type(adapter)
    found = {
        Capability.ACKNOWLEDGED: adapter.acknowledged,
        Capability.KEYS: adapter.carries_keys,
        Capability.ORDERED: is_ordered(publisher),
        Capability.VALIDATE: hasattr(publisher, "validate"),
        Capability.PROBE: hasattr(publisher, "probe"),
    }
    for capability, methods in _METHODS.items():
        found[capability] = all(getattr(kind, one) is not getattr(Adapter, one) for one in methods)
    if Content.LARGE_PAYLOAD in adapter.rejects:
        found[Capability.LOSE] = False  # by its size the message is known whose answer gets lost
    return frozenset(capability for capability, there in found.items() if there)


def delivery_id_of(headers: Mapping[str, str | None]) -> str:
    """Return the id for de-duplication from our headers, for transports without an id.

    Args:
        headers: of a message.
    """
    event_id, lifecycle = headers.get("outbox-event-id"), headers.get("outbox-lifecycle")
    return f"{event_id}" if lifecycle in (None, "0") else f"{event_id}:{lifecycle}"
