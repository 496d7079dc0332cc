"""An event as the relay turns it into a CloudEvent, and what the official SDK must read of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from delta_outbox.publishers import Event, Publisher
from delta_outbox.publishers.cloudevents.conversion import CloudEventFormat
from delta_outbox.publishers.cloudevents.settings import CloudEventSettings
from delta_outbox.publishers.cloudevents.transport import Mode
from delta_outbox.publishers.registry import transport_of

PARENT: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FIELDS: Final[Mapping[str, Any]] = {
    "key": "k ü",
    "payload": b'{"n": 1.50}',
    "headers": {"traceparent": PARENT, "tenant": "x"},
    "lifecycle": 1,
}
"""What an event has that becomes attributes, `content-type` being that of the settings."""


def as_cloudevent(event: Event, publisher: type[Publisher], mode: Mode) -> Event:
    """Return what the relay hands to a publisher.

    Args:
        event: as a producer made it.
        publisher: of the destination.
        mode: of the policy.
    """
    transport = transport_of(publisher)
    assert transport is not None
    settings = CloudEventSettings(source="/shop", extensions={"city": "Zürich 100 %"})
    return CloudEventFormat(settings=settings, transport=transport).write(event, mode)


def check_cloudevent(read: BaseCloudEvent, event: Event) -> None:
    """Compare what the SDK has read with the event.

    Args:
        read: by a consumer.
        event: made with `FIELDS`.
    """
    expected: dict[str, str | datetime] = {
        "specversion": "1.0",
        "id": f"{event.event_id}:1",
        "source": "/shop",
        "type": event.event_type,
        "time": event.created_at,
        "datacontenttype": "application/json",
        "partitionkey": "k ü",
        "traceparent": PARENT,
        "city": "Zürich 100 %",
    }
    assert expected == read.get_attributes()
    assert {"n": 1.5} == read.get_data()


def read_structured(content_type: str, body: bytes) -> BaseCloudEvent:
    """Read the payload of a message for whose transport CloudEvents has no binding.

    Args:
        content_type: that came beside it.
        body: the payload.
    """
    return from_http_event(HTTPMessage(headers={"content-type": content_type}, body=body))
