"""Publishers: how events leave the outbox."""

from __future__ import annotations

from delta_outbox.lifecycle.results import (
    Delivered,
    Failed,
    JsonText,
    NotSent,
    Rejected,
    Result,
    Unknown,
)
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.protocol import (
    Event,
    EventBatch,
    Publisher,
    Recover,
    Recovered,
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
