"""An event in Redis' form: the fields of a stream entry, or one message of a channel."""

from __future__ import annotations

import base64
import json
from typing import Final

from delta_outbox.publishers.protocol import Event

PAYLOAD: Final = b"payload"
DELIVERY_ID: Final = b"id"
KEY: Final = b"key"
# A field is a header if and only if its name begins so; what follows is the header's name, whole.
HEADER: Final = "header:"
NULL_HEADER: Final = "null-header:"  # the header is there and has no value; the field's is empty

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def stream_fields(event: Event) -> list[bytes]:
    """Return the fields of a stream entry, name after value.

    Args:
        event: the event.

    Raises:
        ValueError: a text has no UTF-8.
    """
    fields = [PAYLOAD, event.payload, DELIVERY_ID, event.delivery_id.encode()]
    if event.key is not None:
        fields += (KEY, event.key.encode())
    for name, value in event.transport_headers().items():
        if value is None:
            fields += (f"{NULL_HEADER}{name}".encode(), b"")
        else:
            fields += (f"{HEADER}{name}".encode(), value.encode())
    return fields


def channel_message(event: Event) -> bytes:
    """Return the one JSON text that a channel carries; a payload that is no UTF-8 is in base64.

    Args:
        event: the event.

    Raises:
        ValueError: a text has no UTF-8.
    """
    message: dict[str, object] = {
        "id": event.delivery_id,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "key": event.key,
        "headers": event.transport_headers(),
    }
    try:
        message["payload"] = event.payload.decode("utf-8")
    except UnicodeDecodeError:
        message["payload_base64"] = base64.b64encode(event.payload).decode("ascii")
    message["lifecycle"] = event.lifecycle
    return _encode(message).encode("utf-8")
