"""An event in Kafka's form: headers as bytes."""

from __future__ import annotations

from typing import Final

from delta_outbox.publishers.protocol import (
    EVENT_ID_HEADER,
    EVENT_TYPE_HEADER,
    LIFECYCLE_HEADER,
    RESERVED_HEADERS,
    Event,
)

Headers = list[tuple[str, str | bytes | None]]
_OURS: Final = frozenset(RESERVED_HEADERS)


def kafka_headers(event: Event) -> Headers:
    """Return the producer's headers, then ours unless the producer has one of that name.

    Values become bytes here: the client library cuts text at a NUL.

    Args:
        event: the event.

    Raises:
        ValueError: a name or value has no form in Kafka.
    """
    headers: Headers = [
        (EVENT_ID_HEADER, event.event_id.encode()),
        (EVENT_TYPE_HEADER, event.event_type.encode()),
        (LIFECYCLE_HEADER, b"%d" % event.lifecycle if event.lifecycle else b"0"),
    ]
    given = event.headers
    if given:
        if not _OURS.isdisjoint(given):
            headers = [header for header in headers if header[0] not in given]
        for name, value in given.items():
            if not name or "\0" in name:
                raise ValueError("a header name is empty or holds a NUL")
            if not name.isascii():
                name.encode()  # the client would find out while it sends
            headers.append((name, None if value is None else value.encode()))
    return headers
