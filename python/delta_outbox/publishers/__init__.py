"""Publishers: how events leave the outbox."""

from __future__ import annotations

from delta_outbox.publishers.cloudevents_transport import Transport
from delta_outbox.publishers.protocol import (
    Delivered,
    Event,
    EventBatch,
    Failed,
    JsonText,
    NotSent,
    Publisher,
    Recover,
    Recovered,
    Rejected,
    Result,
    Unknown,
    UnresolvedClaim,
)

__all__ = [
    "Delivered",
    "Event",
    "EventBatch",
    "Failed",
    "JsonText",
    "NotSent",
    "Publisher",
    "Recover",
    "Recovered",
    "Rejected",
    "Result",
    "Transport",
    "Unknown",
    "UnresolvedClaim",
]
