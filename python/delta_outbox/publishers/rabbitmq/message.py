"""What an event becomes in AMQP 0-9-1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pika

from delta_outbox.publishers.http_headers import CONTENT_TYPE
from delta_outbox.publishers.protocol import KEY_HEADER, Event
from delta_outbox.publishers.rabbitmq.settings import SHORT_STRING

_PERSISTENT: Final = 2
# The broker takes them as further routing keys, and takes BCC out.
_ROUTING_HEADERS: Final = frozenset({"CC", "BCC"})
_FRAME_OVERHEAD: Final = 64  # bytes around the properties in the one frame that must hold them
_SURELY_FITS: Final = 1024  # characters of headers that need no measuring: 4 KiB at most


def properties_of(event: Event, *, content_type: str, frame_max: int) -> pika.BasicProperties:
    """Return the properties of the message.

    A header of the producer that is the content type becomes the property that AMQP has for it.

    Args:
        event: to deliver.
        content_type: of the settings, for events that name none.
        frame_max: bytes of a frame, as agreed with the broker.

    Raises:
        ValueError: it has no form in AMQP; the sentence holds no content.
    """
    headers = event.transport_headers()
    if (name := _content_type_of(headers)) is not None:
        content_type = headers.pop(name) or ""
    if event.key is not None:
        headers.setdefault(KEY_HEADER, event.key)
    size = 0
    for name, value in headers.items():
        size += len(name) + len(value or "")
        if len(name) * 4 > SHORT_STRING:
            _check_short("the name of a header", name)
        if name in _ROUTING_HEADERS:
            raise ValueError(f"RabbitMQ takes the header {name} as routing")
    for what, text in (
        ("the event id", event.delivery_id),
        ("the event type", event.event_type),
        ("the route", event.route),
        ("the content type", content_type),
    ):
        if len(text) * 4 > SHORT_STRING:
            _check_short(what, text)
    properties = pika.BasicProperties(
        content_type=content_type,
        headers=headers,
        delivery_mode=_PERSISTENT,
        message_id=event.delivery_id,
        timestamp=_seconds_of(event),
        type=event.event_type,
    )
    if size > _SURELY_FITS:
        encoded = sum(map(len, properties.encode()))
        if encoded + _FRAME_OVERHEAD > frame_max:
            raise ValueError(
                f"its headers take {encoded} bytes, and a frame of the broker's holds {frame_max}"
            )
    return properties


def _seconds_of(event: Event) -> int | None:
    """Return when the event was made in seconds since 1970, as AMQP counts time; None, and then the
    message has no time, if that was earlier.
    """
    seconds = int(event.created_at.timestamp() // 1)
    return seconds if seconds >= 0 else None


def _content_type_of(headers: Mapping[str, str | None]) -> str | None:
    """Return the name of the one header that is the content type, None without exactly one."""
    found = [name for name, value in headers.items() if value and name.lower() == CONTENT_TYPE]
    return found[0] if len(found) == 1 else None


def _check_short(what: str, text: str) -> None:
    size = len(text.encode())
    if size > SHORT_STRING:
        raise ValueError(f"{what} has {size} bytes, and AMQP allows {SHORT_STRING}")
