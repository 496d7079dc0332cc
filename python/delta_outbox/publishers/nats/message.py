"""An event in NATS' form: headers that a line of the protocol can hold."""

from __future__ import annotations

import re
from typing import Final

from delta_outbox.publishers.protocol import KEY_HEADER, Event, header_fault

NULL_HEADER: Final = "outbox-null-headers"  # the names of headers without a value, by spaces
DELIVERY_ID_HEADER: Final = "Nats-Msg-Id"
STREAM_HEADER: Final = "Nats-Expected-Stream"
_STEERING: Final = "nats-"  # such a header is an order to the server: empty the stream, expire it
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", re.ASCII)
_FIRST_LINE: Final = len("NATS/1.0\r\n\r\n")
_PER_LINE: Final = len(": \r\n")


class Unfit(ValueError):
    """The event has no form in NATS; the text says why, without its values."""


def nats_headers(event: Event, *, stream: str | None = None) -> dict[str, str]:
    """Return the headers of a message.

    Args:
        event: the event.
        stream: that must store it.

    Raises:
        Unfit: a name or value cannot be carried as it is.
    """
    given = event.transport_headers()
    if event.key is not None:
        given.setdefault(KEY_HEADER, event.key)
    if (fault := header_fault(given)) is not None:
        raise Unfit(fault)
    headers = {DELIVERY_ID_HEADER: event.delivery_id}
    if stream is not None:
        headers[STREAM_HEADER] = stream
    missing = []
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            raise Unfit(
                f"the header name {name!r} is not made of ASCII letters, digits and !#$%&'*+-.^_`|~"
            )
        if name.lower().startswith(_STEERING):
            raise Unfit(f"the header {name!r} would be an order to the server")
        if value is None:
            missing.append(name)
            continue
        if value != value.strip():
            raise Unfit(f"the header {name!r} begins or ends with a space, which NATS takes away")
        headers[name] = value
    if NULL_HEADER in given:
        raise Unfit(f"the header name {NULL_HEADER!r} is ours: it lists headers without a value")
    if missing:
        headers[NULL_HEADER] = " ".join(missing)
    if event.delivery_id != event.delivery_id.strip() or not event.delivery_id.isprintable():
        raise Unfit("the event's id begins or ends with a space, or cannot be printed")
    return headers


def header_bytes(headers: dict[str, str]) -> int:
    """Return the size of the headers on the wire, which counts for the server's limit.

    Args:
        headers: as `nats_headers` makes them.
    """
    return _FIRST_LINE + sum(
        len(name) + _PER_LINE + len(value.encode()) for name, value in headers.items()
    )
