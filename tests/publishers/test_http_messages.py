"""What arrives at a webhook receiver is what was appended, signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from urllib.parse import unquote

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook, WebhookVerificationError
from tests.publishers.cloudevent import FIELDS, as_cloudevent, check_cloudevent
from tests.publishers.http_server import OLD_SECRET, SECRET, Receiver

from delta_outbox import __version__
from delta_outbox.publishers import Delivered, Rejected
from delta_outbox.publishers.http.publisher import HttpPublisher


@pytest.fixture
def receiver():
    """Start a web server that takes everything."""
    with Receiver() as one:
        yield one


@pytest.fixture
def send(receiver, publish):
    """Publish events to the receiver and return the results."""

    def call(*events, **settings):
        one = HttpPublisher()
        signing = {} if settings.get("sign") is False else {"secrets": [SECRET]}
        one.open({"url": receiver.url, **signing, **settings})
        try:
            return publish(one, list(events))
        finally:
            one.close()

    return call


def _number(pair):
    """Return by what events come in the order in which they were made."""
    return int(pair[0].rpartition("-")[2])


def test_payloads_arrive_byte_for_byte(receiver, send, new_event):
    """Every byte value, the empty payload and 900 KiB arrive as they are."""
    payloads = [bytes(range(256)), b"", b"\xff\x00\xfe" * 307_200]
    results = send(*[new_event("r", "k", payload=payload) for payload in payloads])
    assert [type(result) for result in results] == [Delivered] * 3
    assert [request.body for request in receiver.requests] == payloads


def test_headers_arrive_unchanged(receiver, send, new_event):
    """Names in their case and values, the empty one and many, arrive as given, ours beside them."""
    given = {"Tenant": "a b\tc", "empty": "", "x!#$%&'*+-.^_`|~": '"%,;:'}
    given |= {f"h{number}": str(number) for number in range(80)}
    event = new_event("r", headers=given, lifecycle=2)
    send(event)
    [request] = receiver.requests
    assert given.items() <= dict(request.headers).items()
    assert len(request.headers) == len({name.lower() for name, _ in request.headers})
    expected = {
        "outbox-event-id": event.event_id,
        "outbox-event-type": "flight.departed",
        "outbox-lifecycle": "2",
        "webhook-id": f"{event.event_id}:2",
        "idempotency-key": f"{event.event_id}:2",
        "content-type": "application/json",
        "content-length": "2",
        "user-agent": f"delta-outbox/{__version__}",
        "host": f"127.0.0.1:{receiver.port}",
    }
    assert expected.items() <= request.by_name.items()
    ours = {*expected, "webhook-timestamp", "webhook-signature"}
    assert set(request.by_name) == ours | {name.lower() for name in given}


def test_unicode_headers_arrive_encoded_if_the_settings_say_so(receiver, send, new_event):
    """With header_values = "percent" every value comes back from UTF-8 percent-encoding."""
    given = {"city": "Zürich → 🚀", "blank": " x ", "percent": '100 % "sure"', "plain": "a-b"}
    given |= {"content-type": "text/plain; charset=utf-8"}
    [result] = send(new_event("r", headers=given), header_values="percent")
    assert type(result) is Delivered
    got = receiver.requests[0].by_name
    assert got["content-type"] == "text/plain; charset=utf-8"
    assert given == {name: unquote(got[name], errors="strict") for name in given}
    assert got["plain"] == "a-b"


@pytest.mark.parametrize("form", ["plain", "percent"])
def test_a_key_is_a_header(receiver, send, new_event, form):
    """The key, in any text, is a percent-encoded header of ours in either form of values, unless
    the producer has one of that name; no key is no header.
    """
    keys = ["Zürich\r\nx: y 100 %", " ", "", None]
    send(*[new_event("r", key) for key in keys], header_values=form)
    send(new_event("r", "k", headers={"Outbox-Key": "theirs"}), header_values=form)
    got = {request.by_name["webhook-id"]: request.by_name for request in receiver.requests}
    found = [headers.get("outbox-key") for _, headers in sorted(got.items(), key=_number)]
    assert [value and unquote(value, errors="strict") for value in found] == [*keys, "theirs"]
    assert not any("x" in headers for headers in got.values())


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"city": "Zürich"}, "'city' is not plain ASCII"),
        ({"latin": "\xa0"}, "'latin' is not plain ASCII"),
        ({"blank": " x"}, "'blank' is not plain ASCII"),
        ({"bell": "a\x07"}, "'bell' is not plain ASCII"),
        ({"none": None}, "'none' has no value"),
        ({"two words": "x"}, "'two words' is not allowed in HTTP"),
        ({"": "x"}, "'' is not allowed in HTTP"),
        ({"grün": "x"}, "'grün' is not allowed in HTTP"),
        ({"a:b": "x"}, "'a:b' is not allowed in HTTP"),
        ({"A": "1", "a": "2"}, "'a' differs from another in case only"),
        ({"OUTBOX-event-id": "x"}, "differs from another in case only"),
        ({"Content-Length": "9"}, "'Content-Length' belongs to the transport"),
        ({"transfer-encoding": "chunked"}, "belongs to the transport"),
        ({"HOST": "other"}, "belongs to the transport"),
        ({"connection": "close"}, "belongs to the transport"),
        ({"Idempotency-Key": "x"}, "belongs to the transport"),
        ({"Webhook-Id": "x"}, "belongs to the transport"),
        ({"authorization": "Bearer y"}, "'authorization' is given by the settings"),
    ],
)
def test_headers_without_form_are_rejected(receiver, send, new_event, headers, reason):
    """What HTTP cannot carry is rejected with its name and not its value; neighbours arrive."""
    results = send(
        new_event("r"),
        new_event("r", headers=headers),
        new_event("r"),
        headers={"Authorization": "Bearer canary"},
    )
    assert [type(result) for result in results] == [Delivered, Rejected, Delivered]
    assert reason in results[1].error
    assert not any(
        value and value in results[1].error for value in headers.values() if value != "x"
    )
    assert len(receiver.requests) == 2
    assert {request.by_name["authorization"] for request in receiver.requests} == {"Bearer canary"}


def test_a_producer_names_its_content_type(receiver, send, new_event):
    """The producer's content type wins over the setting, the setting over the default."""
    send(new_event("r"), content_type="application/avro")
    send(new_event("r", headers={"Content-Type": "text/csv"}), content_type="application/avro")
    assert [request.by_name["content-type"] for request in receiver.requests] == [
        "application/avro",
        "text/csv",
    ]


def test_a_signature_verifies_by_the_rules_of_the_specification(receiver, send, new_event):
    """webhook-signature is v1 and the HMAC-SHA256 of id.timestamp.body, the body of any bytes."""
    event = new_event("r", payload=b" \n" + bytes(range(256)) + b"\r\n ")
    before = int(time.time())
    send(event)
    [request] = receiver.requests
    headers = request.by_name
    assert before <= int(headers["webhook-timestamp"]) <= time.time()
    signed = b".".join(
        (event.event_id.encode(), headers["webhook-timestamp"].encode(), request.body)
    )
    digest = hmac.new(bytes(range(32)), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


def test_signatures_verify_with_each_secret_of_a_rotation(receiver, send, new_event):
    """While a secret is replaced, receivers with the new and with the old one both verify; one
    with a third, or with another body, does not.
    """
    send(new_event("r", payload='{"city": "Zürich"}'.encode()), secrets=[SECRET, OLD_SECRET])
    [request] = receiver.requests
    for secret in (SECRET, OLD_SECRET):
        assert Webhook(secret).verify(request.body, request.by_name) == {"city": "Zürich"}
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(b"x" * 32).decode()).verify(
            request.body, request.by_name
        )
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(request.body + b" ", request.by_name)


def test_a_retry_repeats_the_id_and_a_replay_does_not(receiver, send, new_event):
    """A retry has the id of the first attempt, so that a receiver drops it; a replay a new one."""
    send(new_event("r", event_id="e", attempt=1), new_event("r", event_id="e", attempt=2))
    send(new_event("r", event_id="e", lifecycle=1))
    assert [request.by_name["webhook-id"] for request in receiver.requests] == ["e", "e", "e:1"]
    assert [request.by_name["idempotency-key"] for request in receiver.requests] == [
        "e",
        "e",
        "e:1",
    ]


@pytest.mark.parametrize("event_id", ["ü", "a\x07", " a", "order.1674087231", "a.1674087231.b"])
def test_ids_that_no_signature_can_carry_are_rejected(receiver, send, new_event, event_id):
    """An id that is no header value, or that could pass for another id and time, is rejected."""
    [result] = send(new_event("r", event_id=event_id))
    assert type(result) is Rejected
    assert event_id not in result.error
    assert receiver.requests == []


def test_webhooks_without_signature(receiver, send, new_event):
    """With sign = false id and time are sent, and no signature."""
    send(new_event("r", event_id="order.1674087231"), sign=False)
    headers = receiver.requests[0].by_name
    assert headers["webhook-id"] == "order.1674087231"
    assert "webhook-signature" not in headers


@pytest.mark.parametrize(
    ("route", "path"),
    [
        ("order.created", "/hooks/order.created?v=1"),
        ("/orders/42", "/hooks/orders/42?v=1"),
        ("orders/", "/hooks/orders/?v=1"),
        ("a?b#c@d:e f", "/hooks/a%3Fb%23c%40d%3Ae%20f?v=1"),
        ("%2e%2e/x", "/hooks/%252e%252e/x?v=1"),
        ("ü/🚀", "/hooks/%C3%BC/%F0%9F%9A%80?v=1"),
        ("http:;other", "/hooks/http%3A%3Bother?v=1"),
    ],
)
def test_the_route_becomes_a_path_below_the_url(receiver, send, new_event, route, path):
    """A route is a percent-encoded part of the path, below the path of the URL."""
    send(new_event(route), url=f"{receiver.url}/hooks/?v=1")
    assert [request.path for request in receiver.requests] == [path]


@pytest.mark.parametrize(
    "route", ["", "/", "..", "a/../../b", "./a", "//other/x", "a//b", "a\\..\\b", "a\nb", "\ud800"]
)
def test_routes_that_would_escape_are_rejected(receiver, send, new_event, route):
    """A route that could lead out of the path of the URL is rejected, not sent."""
    results = send(new_event(route), new_event("good"))
    assert [type(result) for result in results] == [Rejected, Delivered]
    assert [request.path for request in receiver.requests] == ["/good"]


def test_one_url_for_all_events(receiver, send, new_event):
    """With append_route = false every event goes to the URL as it is written."""
    for path in ("/hooks/in?k=v", "/hooks/", ""):
        send(new_event("../x"), url=receiver.url + path, append_route=False)
    assert [request.path for request in receiver.requests] == ["/hooks/in?k=v", "/hooks/", "/"]


def test_a_receipt_is_the_status(receiver, send, new_event):
    """A receipt is JSON text with the status, and nothing that the receiver wrote."""
    receiver.answer = lambda _: (202, {"x-request-id": "canary"})
    receiver.body = b"canary"
    assert send(new_event("r")) == [Delivered(receipt='{"status":202}')]


@pytest.mark.parametrize("mode", HttpPublisher.cloudevents.modes)
@pytest.mark.parametrize("header_values", ["plain", "percent"])
def test_a_cloudevent_arrives_as_one(receiver, send, new_event, mode, header_values):
    """What the relay makes of an event is read by the official SDK from the request that arrives,
    and its signature verifies.
    """
    event = new_event("r", **FIELDS)
    made = as_cloudevent(event, HttpPublisher, mode)
    assert [type(result) for result in send(made, header_values=header_values)] == [Delivered]
    [request] = receiver.requests
    assert request.by_name["tenant"] == "x"
    assert Webhook(SECRET).verify(request.body, request.by_name)
    read = from_http_event(HTTPMessage(headers=request.by_name, body=request.body))
    check_cloudevent(read, event)
