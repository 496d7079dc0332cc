"""CloudEvents that the official SDK reads as they were meant."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from cloudevents.core.bindings import amqp, http, kafka
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_outbox.lifecycle.policy_columns import PayloadFormat
from delta_outbox.publishers import Event
from delta_outbox.publishers.cloudevents.conversion import as_cloudevent
from delta_outbox.publishers.cloudevents.settings import CloudEventSettings, parse_cloudevents
from delta_outbox.publishers.cloudevents.transport import Mode, Transport

CREATED_AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
SETTINGS = CloudEventSettings(source="/shop/orders?x=%20")
WAYS = [(transport, mode) for transport in Transport for mode in transport.modes]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def _event(**fields):
    return Event(
        **{
            "event_id": "e-1",
            "event_type": "order.created",
            "payload": b'{"n": 1}',
            "created_at": CREATED_AT,
            **fields,
        }
    )


def _read(event, transport):
    """Read with the SDK what a transport would carry, headers as it carries them."""
    headers = {name: value for name, value in event.headers.items() if value is not None}
    if transport in (Transport.HTTP, Transport.NATS, Transport.UNBOUND):
        return http.from_http_event(http.HTTPMessage(headers=headers, body=event.payload))
    if transport is Transport.KAFKA:
        encoded = {name: value.encode() for name, value in headers.items()}
        return kafka.from_kafka_event(
            kafka.KafkaMessage(headers=encoded, key=None, value=event.payload)
        )
    properties = {"content-type": headers.pop("content-type")}
    return amqp.from_amqp_event(
        amqp.AMQPMessage(
            properties=properties, application_properties=headers, application_data=event.payload
        )
    )


def _as_bytes(read):
    """Return the data that was read as the bytes of its payload, parsed JSON aside."""
    data = read.get_data()
    return data.encode() if isinstance(data, str) else data or b""


@pytest.mark.parametrize(("transport", "mode"), WAYS)
def test_the_sdk_reads_attributes_and_data(transport, mode):
    """On each transport, in each of its modes, the SDK finds attributes and data of the event."""
    settings = CloudEventSettings(source="/shop", extensions={"tenant": "Zürich 100 %"})
    event = _event(
        lifecycle=2,
        key="k ü",
        headers={"Tenant": "x", "TraceParent": PARENT, "tracestate": "a=b, c=d"},
        created_at=CREATED_AT.astimezone(timezone(timedelta(hours=2))),
    )
    read = _read(as_cloudevent(event, settings, mode=mode, transport=transport), transport)
    assert read.get_attributes() == {
        "specversion": "1.0",
        "id": "e-1:2",
        "source": "/shop",
        "type": "order.created",
        "time": CREATED_AT,
        "datacontenttype": "application/json",
        "partitionkey": "k ü",
        "tenant": "Zürich 100 %",
        "traceparent": PARENT,
        "tracestate": "a=b, c=d",
    }
    assert read.get_data() == {"n": 1}


@pytest.mark.parametrize(
    ("transport", "name", "value"),
    [
        (Transport.KAFKA, "ce_source", "/shop/orders?x=%20"),
        (Transport.HTTP, "ce-source", "/shop/orders?x=%2520"),
        (Transport.NATS, "ce-source", "/shop/orders?x=%2520"),
        (Transport.AMQP, "cloudEvents_source", "/shop/orders?x=%20"),
    ],
)
def test_headers_of_binary_mode(transport, name, value):
    """Each transport has its own prefix and encoding; payload and the producer's headers stay."""
    event = _event(headers={"Tenant": "ü", "none": None}, payload=b"\xff\x00")
    made = as_cloudevent(event, SETTINGS, mode=Mode.BINARY, transport=transport)
    prefix = name.removesuffix("source")
    assert made.payload == event.payload
    headers = dict(made.headers or {})
    assert headers[name] == value
    assert headers[f"{prefix}time"] == "2026-01-02T03:04:05.678901Z"
    assert set(headers) == {"Tenant", "none", "content-type"} | {
        prefix + attribute for attribute in ("specversion", "id", "source", "type", "time")
    }


@pytest.mark.parametrize("mode", Mode)
def test_nothing_else_of_the_event_changes(mode):
    """Key, route, order and identity of the event stay as they are."""
    event = _event(key="k", ordering_key="k", route="r", attempt=3, claim_id="c")
    made = as_cloudevent(event, SETTINGS, mode=mode, transport=Transport.HTTP)
    for name in Event.__slots__:
        if name not in ("payload", "headers"):
            assert getattr(made, name) == getattr(event, name)
    assert made.delivery_id == event.delivery_id


def test_json_is_put_in_as_it_is_written():
    """A JSON payload stands in the structured form byte for byte: no number, name or blank of it
    is rewritten.
    """
    payload = b'{ "a":1.0E+5,"a" : 12345678901234567890123456789.10,"b":"\\u00fc\xc3\xbc" }'
    event = _event(payload=payload)
    made = as_cloudevent(event, SETTINGS, mode=Mode.STRUCTURED, transport=Transport.HTTP)
    assert made.payload.endswith(b',"data":' + payload + b"}")
    assert made.headers == {"content-type": "application/cloudevents+json; charset=UTF-8"}


@pytest.mark.parametrize(
    ("content_type", "payload", "member"),
    [
        ("application/json", b"null", "data"),
        ("application/json", b'"text"', "data"),
        ("application/json", b" [1]\n", "data"),
        ("Application/JSON;charset=utf-8", b"1", "data"),
        ("application/vnd.shop+json; v=1", b"{}", "data"),
        ("application/json", b"", "data_base64"),
        ("application/json", b"{", "data_base64"),
        ("application/json", b"NaN", "data_base64"),
        ("application/json", b"[Infinity]", "data_base64"),
        ("application/json", b"\xef\xbb\xbf{}", "data_base64"),
        ("application/json", '{"a": 1}'.encode("utf-16"), "data_base64"),
        ("application/json", b'"\xff"', "data_base64"),
        ("application/json", b"[" * 100_000, "data_base64"),
        ("application/json", b"{}{}", "data_base64"),
        ("text/plain", b"{}", "data_base64"),
        ("application/jsonlines", b"{}", "data_base64"),
        ("application/x-json-not", b"{}", "data_base64"),
    ],
)
def test_data_or_base64(content_type, payload, member):
    """What is called JSON and is JSON stands in `data`, everything else in `data_base64`."""
    event = _event(payload=payload, headers={"Content-Type": content_type})
    made = as_cloudevent(event, SETTINGS, mode=Mode.STRUCTURED, transport=Transport.KAFKA)
    envelope = json.loads(made.payload)
    assert {"data", "data_base64"} & set(envelope) == {member}
    assert envelope["datacontenttype"] == content_type
    read = _read(made, Transport.KAFKA)
    assert read.get_data() == (json.loads(payload) if member == "data" else payload)


_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=30)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None)
@given(
    event_id=_TEXT,
    event_type=_TEXT,
    key=st.none() | _TEXT,
    lifecycle=st.integers(0, 3),
    value=_JSON,
    created_at=st.datetimes(timezones=st.just(UTC)),
    way=st.sampled_from(WAYS),
)
def test_any_event_is_read_back(event_id, event_type, key, lifecycle, value, created_at, way):
    """Whatever text is in an event, the SDK reads the same text, time and data from it."""
    transport, mode = way
    event = _event(
        event_id=event_id,
        event_type=event_type,
        key=key,
        lifecycle=lifecycle,
        payload=json.dumps(value).encode(),
        created_at=created_at,
    )
    made = as_cloudevent(event, SETTINGS, mode=mode, transport=transport)
    read = _read(made, transport)
    attributes = read.get_attributes()
    assert attributes["id"] == event.delivery_id
    assert attributes["type"] == event_type
    assert attributes["time"] == created_at
    assert attributes.get("partitionkey") == key
    assert read.get_data() == value or (isinstance(value, float) and math.isnan(value))


@settings(deadline=None)
@given(payload=st.binary(), way=st.sampled_from(WAYS))
def test_any_bytes_are_read_back(payload, way):
    """Binary data comes back byte for byte."""
    transport, mode = way
    event = _event(payload=payload, headers={"content-type": "application/octet-stream"})
    made = as_cloudevent(event, SETTINGS, mode=mode, transport=transport)
    assert _as_bytes(_read(made, transport)) == payload


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"event_id": ""}, "its attribute id"),
        ({"event_id": "a\x85"}, "its attribute id"),
        ({"event_type": "a\ufffe"}, "its attribute type"),
        ({"event_type": ""}, "its attribute type"),
        ({"key": "canary\n"}, "its attribute partitionkey"),
        ({"key": "\udfff"}, "its attribute partitionkey"),
        ({"headers": {"Ce-Id": "canary"}}, "its header 'Ce-Id' would pass for an attribute"),
        ({"headers": {"ce-x": "canary"}}, "its header 'ce-x' would pass for an attribute"),
        ({"headers": {"content-type": "canary"}}, "its content type is no media type"),
        ({"headers": {"content-type": None}}, "its content type is empty"),
        ({"headers": {"content-type": "a/b", "Content-Type": "a/b"}}, "given twice"),
    ],
)
@pytest.mark.parametrize("mode", Mode)
def test_events_without_form_are_refused(fields, reason, mode):
    """What CloudEvents cannot say is a reason without the event's values, never altered."""
    with pytest.raises(ValueError, match=reason) as caught:
        as_cloudevent(_event(**fields), SETTINGS, mode=mode, transport=Transport.HTTP)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("name", ["cloudEvents_id", "cloudEvents:id", "CloudEvents:ID"])
def test_no_header_passes_for_an_attribute_in_amqp(name):
    """A header that begins in either way of the binding is refused, for readers take both."""
    with pytest.raises(ValueError, match="would pass for an attribute"):
        as_cloudevent(
            _event(headers={name: "x"}), SETTINGS, mode=Mode.BINARY, transport=Transport.AMQP
        )


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": "garbage"},
        {"traceparent": None},
        {"tracestate": "a=b"},
        {"traceparent": PARENT.upper()},
    ],
)
def test_a_broken_trace_costs_no_event(headers):
    """Trace context that is none becomes no attribute; the header stays as it is."""
    made = as_cloudevent(
        _event(headers=headers), SETTINGS, mode=Mode.BINARY, transport=Transport.KAFKA
    )
    made_headers = dict(made.headers or {})
    assert headers.items() <= made_headers.items()
    assert not {"ce_traceparent", "ce_tracestate"} & set(made_headers)


def test_an_empty_key_is_no_partition_key():
    """An empty key, which CloudEvents does not allow, is left out; the event still has it."""
    made = as_cloudevent(_event(key=""), SETTINGS, mode=Mode.BINARY, transport=Transport.KAFKA)
    assert "ce_partitionkey" not in dict(made.headers or {})
    assert made.key == ""


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"source": ""}, "`source` must be a URI-reference"),
        ({"source": "a b"}, "`source` must be a URI-reference"),
        ({"source": "/ü"}, "`source` must be a URI-reference"),
        ({"source": "/%zz"}, "`source` must be a URI-reference"),
        ({"source": None}, "`source` must be a URI-reference"),
        ({"content_type": "json"}, "`content_type` must be a media type"),
        ({"extensions": {"Tenant": "x"}}, "lower-case letters"),
        ({"extensions": {"my_tenant": "x"}}, "lower-case letters"),
        ({"extensions": {"": "x"}}, "lower-case letters"),
        ({"extensions": {"a" * 21: "x"}}, "lower-case letters"),
        ({"extensions": {"id": "x"}}, "no attribute that is set from the event"),
        ({"extensions": {"data": "x"}}, "no attribute that is set from the event"),
        ({"extensions": {"tenant": "a\n"}}, "without control characters"),
        ({"extensions": {"tenant": ""}}, "without control characters"),
        ({"extensions": {"tenant": 1}}, "without control characters"),
        ({"extensions": "tenant"}, "must be a table"),
        ({"extensions": ["tenant"]}, "must be a table"),
    ],
)
def test_wrong_settings_are_one_sentence(settings, rule):
    """Each rule of the settings has its sentence."""
    with pytest.raises(ValueError, match=rule):
        parse_cloudevents({"source": "/shop", **settings})


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("/shop", "must be a table with `source`"),
        ({}, "`source` must be given"),
        ({"extensions": {"tenant": "x"}}, "`source` must be given"),
        ({"sources": "/shop"}, r"Did you mean `source`\?"),
        ({"source": "/shop", "mode": "binary"}, "`mode` is not among the settings"),
    ],
)
def test_wrong_tables_are_one_sentence(table, rule):
    """A table without a source, or with a name that does not exist, is refused."""
    with pytest.raises(ValueError, match=rule):
        parse_cloudevents(table)


def test_modes_are_formats_of_policies():
    """What a policy may ask for is the payload as it is, or one of the modes."""
    assert set(PayloadFormat) == {"raw", *Mode}
