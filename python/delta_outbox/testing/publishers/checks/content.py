"""Checks of what arrives: bytes and headers as they were given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from delta_outbox.lifecycle.results import Delivered, Rejected
from delta_outbox.publishers.protocol import Event
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.adapter import Arrival, Content
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.stage import LARGE_MESSAGE, Stage, by_id

_PLAIN = "plain"
_NO_HEADERS = "no headers"
_NO_KEY = "no key"
_EVERY_BYTE = bytes(range(256)) + b"\xff\xfe\x00\r\n\r\n.\r\n"


@dataclass(frozen=True, kw_only=True)
class Carried:
    """An event of some content, its result and what arrived of it."""

    event: Event
    result: object
    arrived: tuple[Arrival, ...]
    headers: Mapping[str, str | None]
    must_be_rejected: bool


Seen = Mapping[str, Carried]


def contents(stage: Stage) -> Mapping[str, Event]:
    """Return an event for every content that may be hard to carry.

    Args:
        stage: that names them.
    """
    fields: dict[str, dict[str, Any]] = {
        _PLAIN: {},
        _NO_HEADERS: {"headers": None},
        _NO_KEY: {"key": None, "ordering_key": None},
        Content.EMPTY_PAYLOAD: {"payload": b""},
        Content.BINARY_PAYLOAD: {"payload": _EVERY_BYTE},
        Content.LARGE_PAYLOAD: {"payload": os.urandom(stage.adapter.large_bytes)},
        Content.UNICODE_HEADERS: {"headers": {"kit": "grün → 🚀 ß", "kit-space": "a  b"}},
        Content.EMPTY_HEADER: {"headers": {"kit": "", "kit-other": "there"}},
        Content.NO_VALUE: {"headers": {"kit": None, "kit-other": "there"}},
        Content.MANY_HEADERS: {
            "headers": {f"kit-{one}": f"value {one}" for one in range(stage.adapter.many_headers)}
        },
    }
    return {
        name: replace(stage.event(name.replace(" ", "-")), **given)
        for name, given in fields.items()
    }


def _play(stage: Stage) -> Seen:
    assert stage.adapter.large_bytes >= LARGE_MESSAGE
    publisher = stage.open()
    events = contents(stage)
    call = stage.publish(publisher, list(events.values()))
    arrived = by_id(stage.arrivals(call))
    results = dict(call.pairs_by_id)
    return {
        name: Carried(
            event=event,
            result=results.get(event.delivery_id),
            arrived=tuple(arrived.get(event.delivery_id, ())),
            headers=dict(stage.adapter.expected_headers(event)),
            must_be_rejected=name in stage.adapter.rejects,
        )
        for name, event in events.items()
    }


CONTENT = Scenario("content", _play)


def _judge(seen: Seen, name: str) -> None:
    one = seen[name]
    if one.must_be_rejected:
        same(Rejected, type(one.result), f"the answer to {name}")
        same(0, len(one.arrived), f"arrivals of {name}")
        return
    same(Delivered, type(one.result), f"the answer to {name}")
    holds(one.arrived, f"{name} has not arrived")
    for arrival in one.arrived:
        # Not `same`: nobody wants to read 128 KiB.
        holds(
            one.event.payload == arrival.payload,
            f"{name}: the payload is another: {len(one.event.payload)} bytes were given, "
            f"{len(arrival.payload)} arrived",
        )
        same(one.headers, dict(arrival.headers), f"the headers of an event with {name}")


@CONTENT.check()
def payload_and_headers_arrive(seen: Seen) -> None:
    """The payload arrives byte for byte, the headers and ours by name and value."""
    _judge(seen, _PLAIN)


@CONTENT.check()
def an_event_without_headers_arrives(seen: Seen) -> None:
    """An event whose headers are None arrives like any other."""
    _judge(seen, _NO_HEADERS)


@CONTENT.check()
def an_event_without_a_key_arrives(seen: Seen) -> None:
    """An event without key and ordering key arrives like any other."""
    _judge(seen, _NO_KEY)


@CONTENT.check()
def an_empty_payload_arrives(seen: Seen) -> None:
    """An empty payload arrives empty, or is rejected as documented."""
    _judge(seen, Content.EMPTY_PAYLOAD)


@CONTENT.check()
def every_byte_arrives(seen: Seen) -> None:
    """Every byte from 0x00 to 0xff arrives as it is, line ends and all."""
    _judge(seen, Content.BINARY_PAYLOAD)


@CONTENT.check()
def a_large_payload_arrives(seen: Seen) -> None:
    """A payload of `large_bytes` arrives whole, or is rejected as documented: it is never cut."""
    _judge(seen, Content.LARGE_PAYLOAD)


@CONTENT.check()
def unicode_in_headers_arrives(seen: Seen) -> None:
    """Values of headers arrive character for character, or are rejected as documented."""
    _judge(seen, Content.UNICODE_HEADERS)


@CONTENT.check()
def an_empty_header_arrives(seen: Seen) -> None:
    """An empty value of a header arrives empty, or is rejected as documented."""
    _judge(seen, Content.EMPTY_HEADER)


@CONTENT.check()
def a_header_without_a_value_arrives(seen: Seen) -> None:
    """A header without a value becomes what is documented, or is rejected as documented."""
    _judge(seen, Content.NO_VALUE)


@CONTENT.check()
def many_headers_arrive(seen: Seen) -> None:
    """Many headers arrive all, or the event is rejected as documented: none is dropped."""
    _judge(seen, Content.MANY_HEADERS)
