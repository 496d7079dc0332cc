"""An event as one HTTP request."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from delta_outbox.core.version import __version__
from delta_outbox.publishers.http.settings import HttpSettings
from delta_outbox.publishers.http.signature import signatures
from delta_outbox.publishers.http_headers import (
    CONTENT_TYPE,
    SIGNATURE_HEADERS,
    USER_AGENT,
    event_headers,
    is_plain_value,
)
from delta_outbox.publishers.protocol import Event

_USER_AGENT: Final = f"delta-outbox/{__version__}"


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpMessage:
    """One request.

    Args:
        target: path and query.
        headers: names and values, all of them.
        body: the payload.
    """

    target: str
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)


def http_message(event: Event, settings: HttpSettings) -> HttpMessage:
    """Return the request for an event; it is signed with the time of this attempt.

    Args:
        event: the event.
        settings: of the destination.

    Raises:
        ValueError: the event has no form in HTTP; one clause without values of the event.
    """
    target = settings.target.request_target(event.route)
    given = event_headers(event, form=settings.header_values, settings=settings.headers)
    names = {name.lower() for name, _ in given}
    id_ = event.delivery_id
    if not id_ or not is_plain_value(id_):
        raise ValueError("its id is not plain ASCII")
    headers = [("host", settings.target.host_header), ("content-length", str(len(event.payload)))]
    if CONTENT_TYPE not in names:
        headers.append((CONTENT_TYPE, settings.content_type))
    if USER_AGENT not in names and USER_AGENT not in settings.headers:
        headers.append((USER_AGENT, _USER_AGENT))
    now = int(time.time())
    headers += [(SIGNATURE_HEADERS[0], id_), (SIGNATURE_HEADERS[1], str(now))]
    if settings.keys:
        signed = signatures(settings.keys, id_=id_, timestamp=now, body=event.payload)
        headers.append((SIGNATURE_HEADERS[2], signed))
    headers.append(("idempotency-key", id_))
    headers += settings.headers.items()
    headers += given
    return HttpMessage(target=target, headers=headers, body=event.payload)
