"""A request is either one that HTTP allows, or a reason why there is none."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import h11
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.publishers import Event
from delta_outbox.publishers.http.message import http_message
from delta_outbox.publishers.http.settings import parse_settings

SETTINGS = [
    parse_settings(
        {
            "url": "https://example.com/in?k=v",
            "secrets": ["whsec_" + base64.b64encode(bytes(32)).decode()],
            "headers": {"x-given": "1"},
            "header_values": form,
        }
    )
    for form in ("plain", "percent")
]
_TEXT = st.text(st.sampled_from(" \t\r\n\0:ab-,ü%\x7f") | st.characters(), max_size=8)


@given(
    headers=st.dictionaries(_TEXT, st.none() | _TEXT, max_size=4),
    event_id=_TEXT,
    route=_TEXT,
    payload=st.binary(max_size=20),
    settings=st.sampled_from(SETTINGS),
)
def test_any_event_is_a_request_or_a_reason(headers, event_id, route, payload, settings):
    """Whatever is in an event, the parser of a server reads one request from it, with those very
    headers and the payload; or it is refused.
    """
    event = Event(
        event_id=event_id,
        event_type="t",
        headers=headers,
        payload=payload,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        route=route,
    )
    try:
        message = http_message(event, settings)
    except ValueError:
        return
    client, server = h11.Connection(h11.CLIENT), h11.Connection(h11.SERVER)
    request = h11.Request(method="POST", target=message.target, headers=message.headers)
    server.receive_data(client.send(request) or b"")
    server.receive_data(client.send(h11.Data(data=message.body)) or b"")
    read = server.next_event()
    assert isinstance(read, h11.Request)
    names = [name.lower() for name, _ in message.headers]
    assert len(names) == len(set(names))
    assert [(name.decode(), value.decode()) for name, value in read.headers.raw_items()] == [
        (name, value) for name, value in message.headers
    ]
    body = b""
    while isinstance(event_read := server.next_event(), h11.Data):
        body += bytes(event_read.data)
    assert body == payload
