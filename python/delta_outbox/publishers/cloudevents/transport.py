"""How transports carry CloudEvents: in which modes, and what they call an attribute."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Where the attributes of an event stand; the values are those of the policy's `format`."""

    STRUCTURED = "cloudevents-structured"  # in the payload, as JSON around the data
    BINARY = "cloudevents-binary"  # in headers; the payload is the data


class Transport(StrEnum):
    """How a transport writes attributes.

    RabbitMQ's AMQP 0-9-1 has no binding of its own: it does as AMQP 1.0 does, into which the
    broker translates it for consumers that speak that.
    """

    KAFKA = "kafka"
    HTTP = "http"
    NATS = "nats"
    AMQP = "amqp"
    UNBOUND = "unbound"  # CloudEvents has no binding: no reader would look for attributes in it

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Return the modes in which it carries events."""
        return (Mode.STRUCTURED,) if self is Transport.UNBOUND else tuple(Mode)

    @property
    def prefix(self) -> str:
        """Return what the name of an attribute begins with in a header."""
        return {"kafka": "ce_", "amqp": "cloudEvents_"}.get(self.value, "ce-")

    @property
    def read_prefixes(self) -> tuple[str, ...]:
        """Return, in small letters, all beginnings by which consumers know an attribute."""
        # The binding lets AMQP consumers take both; JMS cannot express the colon.
        older = ("cloudevents:",) if self is Transport.AMQP else ()
        return (self.prefix.lower(), *older)

    @property
    def is_encoded(self) -> bool:
        """Return whether values are percent-encoded."""
        return self in (Transport.HTTP, Transport.NATS)
