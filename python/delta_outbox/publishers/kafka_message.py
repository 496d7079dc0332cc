"""An event in Kafka's form: key and headers as bytes."""

from __future__ import annotations

from delta_outbox.publishers.protocol import (
    EVENT_ID_HEADER,
    EVENT_TYPE_HEADER,
    LIFECYCLE_HEADER,
    Event,
)

Headers = list[tuple[str, str | bytes | None]]


def kafka_headers(event: Event) -> Headers:
    """Return the producer's headers, then ours unless the producer has one of that name.

    Values become bytes here: the client library cuts text at a NUL.

    Args:
        event: the event.

    Raises:
        ValueError: a name or value has no form in Kafka.
    """
    ours: Headers = [
        (EVENT_ID_HEADER, event.event_id.encode()),
        (EVENT_TYPE_HEADER, event.event_type.encode()),
        (LIFECYCLE_HEADER, b"%d" % event.lifecycle),
    ]
    given = event.headers
    if not given:
        return ours
    headers: Headers = []
    for name, value in given.items():
        if "\0" in name or not name:
            raise ValueError("a header name is empty or holds a NUL")
        headers.append((name, None if value is None else value.encode()))
    headers += [header for header in ours if header[0] not in given]
    return headers
