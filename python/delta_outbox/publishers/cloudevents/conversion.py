"""Events as CloudEvents 1.0: from an event and two settings to payload and headers. Pure.

Texts: CloudEvents 1.0.2, its JSON format, its bindings for HTTP, Kafka and AMQP (1.0.2) and for
NATS (1.0.3, the first with headers), the extensions Partitioning and Distributed Tracing.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Final, Never

from delta_outbox.publishers.cloudevents.settings import CloudEventSettings
from delta_outbox.publishers.cloudevents.text import MEDIA_TYPE, NO_STRING
from delta_outbox.publishers.cloudevents.transport import Mode, Transport
from delta_outbox.publishers.http_headers import percent_encoded
from delta_outbox.publishers.protocol import Event

SPEC_VERSION: Final = "1.0"
STRUCTURED_TYPE: Final = "application/cloudevents+json; charset=UTF-8"
CONTENT_TYPE: Final = "content-type"
# W3C Trace Context; one that is broken is not worth an event.
_TRACE_PARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACE_STATE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,510}[\x21-\x7e])?")
_JSON_TYPE: Final = re.compile(r"(?i)[^/;\s]+/(?:[^/;\s]+\+)?json\s*(?:;.*)?")


@dataclass(frozen=True, kw_only=True)
class CloudEventFormat:
    """How one destination writes CloudEvents.

    Args:
        settings: of the destination.
        transport: of its publisher.
    """

    settings: CloudEventSettings
    transport: Transport

    def write(self, event: Event, mode: Mode) -> Event:
        """Return the event as a CloudEvent; see `as_cloudevent`.

        Args:
            event: as the producer made it.
            mode: of the policy, one of those of the transport.
        """
        return as_cloudevent(event, self.settings, mode=mode, transport=self.transport)


def as_cloudevent(
    event: Event, settings: CloudEventSettings, *, mode: Mode, transport: Transport
) -> Event:
    """Return the event whose payload and headers are those of a CloudEvent.

    Everything else of it stays, so that key, order, route and de-duplication do.

    Args:
        event: as the producer made it.
        settings: of the destination.
        mode: of the policy.
        transport: of the publisher.

    Raises:
        ValueError: the event has no form as a CloudEvent; one clause without its values.
    """
    headers, content_type = _without_content_type(event.headers or {}, transport)
    content_type = settings.content_type if content_type is None else content_type
    if not MEDIA_TYPE.fullmatch(content_type):
        raise ValueError("its content type is no media type")
    attributes = _attributes(event, settings)
    if mode is Mode.STRUCTURED:
        payload = _envelope({**attributes, "datacontenttype": content_type}, event.payload)
        return replace(event, payload=payload, headers={**headers, CONTENT_TYPE: STRUCTURED_TYPE})
    written = {
        f"{transport.prefix}{name}": percent_encoded(value) if transport.is_encoded else value
        for name, value in attributes.items()
    }
    return replace(event, headers={**headers, **written, CONTENT_TYPE: content_type})


def _without_content_type(
    headers: Mapping[str, str | None], transport: Transport
) -> tuple[dict[str, str | None], str | None]:
    """Return the producer's headers but the content type, and that; ours may not be among them."""
    kept: dict[str, str | None] = {}
    content_type: str | None = None
    for name, value in headers.items():
        if name.lower() == CONTENT_TYPE:
            if content_type is not None or value is None:
                raise ValueError("its content type is empty or given twice")
            content_type = value
        elif name.lower().startswith(transport.read_prefixes):
            raise ValueError(f"its header {name[:80]!r} would pass for an attribute")
        else:
            kept[name] = value
    return kept, content_type


def _attributes(event: Event, settings: CloudEventSettings) -> dict[str, str]:
    """Return the attributes as text, those of the data aside."""
    created = event.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    attributes = {
        "specversion": SPEC_VERSION,
        "id": event.delivery_id,
        "source": settings.source,
        "type": event.event_type,
        "time": created.removesuffix("+00:00") + "Z",
    }
    if event.key:
        attributes["partitionkey"] = event.key
    attributes |= _trace(event.headers or {})
    attributes |= settings.extensions
    for name, value in attributes.items():
        if not value or NO_STRING.search(value):
            raise ValueError(f"its attribute {name} is empty or has characters that no text has")
    return attributes


def _trace(headers: Mapping[str, str | None]) -> dict[str, str]:
    """Return the attributes of the extension Distributed Tracing, none without a valid parent."""
    given = {name.lower(): value or "" for name, value in headers.items()}
    parent, state = given.get("traceparent", ""), given.get("tracestate", "")
    if not _TRACE_PARENT.fullmatch(parent):
        return {}
    return {"traceparent": parent} | (
        {"tracestate": state} if _TRACE_STATE.fullmatch(state) else {}
    )


def _envelope(attributes: Mapping[str, str], payload: bytes) -> bytes:
    """Return the JSON around the data.

    A payload that is JSON is put in as it is written, because reading it and writing it again
    would lose what JSON can say and Python cannot: long numbers, names given twice, blanks.
    """
    text = _json_text(payload) if _JSON_TYPE.fullmatch(attributes["datacontenttype"]) else None
    if text is None:
        encoded = base64.b64encode(payload).decode("ascii")
        return _dumped({**attributes, "data_base64": encoded}).encode()
    return f'{_dumped(attributes)[:-1]},"data":{text}}}'.encode()


def _dumped(members: Mapping[str, str]) -> str:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def _json_text(payload: bytes) -> str | None:
    """Return a payload that is one JSON value in UTF-8, None if it is anything else."""
    try:
        text = payload.decode("utf-8")
        json.loads(text, parse_constant=_refuse, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
    return text


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")  # though Python writes it
