"""Receivers that are away, frozen or slow; deadlines, order, many events."""

from __future__ import annotations

import logging
import socket
import time
from collections import defaultdict

import pytest
from tests.publishers.http_server import SECRET, RawServer, Receiver, ReceiverProcess, read_request
from tests.publishers.timing import GRACE, MIDDLE

from delta_outbox.core.errors import PublisherUnavailable
from delta_outbox.publishers import Delivered, EventBatch, Failed, NotSent, Rejected, Unknown
from delta_outbox.publishers.http.publisher import HttpPublisher
from delta_outbox.publishers.registry import find_publisher, is_ordered, probe


@pytest.fixture
def receiver():
    """Start a receiver that can be killed and frozen."""
    with ReceiverProcess() as one:
        yield one


@pytest.fixture
def full():
    """Listen at an address that takes no more connections: whoever tries gets no answer."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    port = listener.getsockname()[1]
    waiting = []
    for _ in range(3):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        waiting.append(one)
    yield f"http://127.0.0.1:{port}"
    for one in (*waiting, listener):
        one.close()


def kinds_of(results):
    """Return the kinds of some results, in order."""
    return [type(result) for result in results]


def test_http_is_a_type():
    """`type = "http"` is the open_http, and it keeps order."""
    assert find_publisher("http", destination="default") is HttpPublisher
    assert is_ordered(HttpPublisher)


def test_a_refused_connection_has_failed(open_http, new_event, publish):
    """Where nobody listens nothing was sent: every event has failed, with host and port."""
    events = [new_event("r", "k"), new_event("r", "k"), *[new_event("r") for _ in range(1000)]]
    results = publish(open_http("http://127.0.0.1:1"), events)
    assert kinds_of(results) == [Failed, NotSent] + [Failed] * 1000
    assert results[0].error == "127.0.0.1:1 cannot be reached: Connection refused"


def test_a_name_that_does_not_exist_has_failed(open_http, new_event, publish):
    """A name that stands for nothing sends nothing: the event has failed."""
    [result] = publish(open_http("https://outbox.invalid/x"), [new_event("r")], seconds=10)
    assert isinstance(result, Failed)
    assert result.error.startswith("outbox.invalid:443 cannot be resolved")


def test_a_receiver_that_does_not_accept_has_failed(open_http, new_event, publish, full):
    """A connection that does not come about within the limit has failed for all, in that time."""
    start = time.monotonic()
    results = publish(open_http(full, timeout_seconds=0.5), [new_event("r") for _ in range(500)])
    assert 0.5 <= time.monotonic() - start < 0.5 + GRACE
    assert set(kinds_of(results)) == {Failed}
    assert "cannot be reached: no answer in time" in results[0].error


def test_a_receiver_that_stops_and_starts(receiver, open_http, new_event, publish):
    """Events of a receiver that was killed in the middle are delivered, failed, unknown or unsent
    as it knows them, and of each key one is the last that was tried; once it is back the next call
    delivers the rest, in order, and what was called delivered arrived once.
    """
    receiver.kill()
    receiver.start(ends_at=200)
    one = open_http(receiver.url)
    events = [new_event("r", f"k{n % 10}", payload=b"%d" % n) for n in range(5000)]
    kinds = kinds_of(publish(one, events))
    assert {Delivered, Unknown, NotSent} <= set(kinds) <= {Delivered, Failed, Unknown, NotSent}
    for key in range(10):
        of_key = [kind for kind in kinds[key::10] if kind is not Delivered]
        assert of_key[0] in (Failed, Unknown)
        assert set(of_key[1:]) == {NotSent}
        assert kinds[key::10][: -len(of_key)] == [Delivered] * (500 - len(of_key))
    arrived = [event_id for event_id, _ in receiver.received()]
    said = {event.event_id: kind for event, kind in zip(events, kinds, strict=True)}
    assert len(arrived) == len(set(arrived))
    assert {name for name, kind in said.items() if kind is Delivered} <= set(arrived)
    assert {said[name] for name in arrived} <= {Delivered, Unknown}
    receiver.kill()
    receiver.start()
    rest = [event for event in events if said[event.event_id] is not Delivered]
    assert set(kinds_of(publish(one, rest))) == {Delivered}
    by_key: dict[str, list[int]] = defaultdict(list)
    keys = {event.event_id: event.key for event in events}
    for event_id, body in receiver.received():
        if int(body) not in by_key[keys[event_id]]:
            by_key[keys[event_id]].append(int(body))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
    assert sum(map(len, by_key.values())) == 5000


def test_a_frozen_receiver(receiver, open_http, new_event, publish):
    """What was sent to a frozen receiver is unknown at the limit; it is not sent again."""
    one = open_http(receiver.url, timeout_seconds=0.5, concurrency=4)
    publish(one, [new_event("r") for _ in range(4)])
    receiver.pause()
    start = time.monotonic()
    results = publish(one, [new_event("r") for _ in range(8)])
    assert 1.0 <= time.monotonic() - start < 1.0 + GRACE
    assert kinds_of(results) == [Unknown] * 8
    receiver.resume()
    receiver.wait_for(12)
    assert len(receiver.received()) == 12
    assert kinds_of(publish(one, [new_event("r")])) == [Delivered]


def test_the_deadline_cuts_a_request_off(receiver, open_http, new_event, publish):
    """At the deadline what is under way is unknown and the rest is not sent, then or later."""
    one = open_http(receiver.url, concurrency=4)
    receiver.pause()
    start = time.monotonic()
    results = publish(one, [new_event("r") for _ in range(100)], seconds=MIDDLE)
    assert MIDDLE <= time.monotonic() - start < MIDDLE + GRACE
    kinds = kinds_of(results)
    begun = kinds.count(Unknown)
    assert 0 < begun <= 4
    assert kinds.count(NotSent) == 100 - begun
    receiver.resume()
    time.sleep(0.5)
    assert len(receiver.received()) <= begun


def test_the_deadline_ends_a_long_call(receiver, open_http, new_event, publish):
    """A batch too long for its deadline ends in time; what arrived was not called unsent."""
    events = [new_event("r", f"k{n % 50}") for n in range(50_000)]
    one, first = open_http(receiver.url), new_event("r")
    publish(one, [first])  # to connect may take longer than the deadline
    start = time.monotonic()
    results = publish(one, events, seconds=0.7)
    assert time.monotonic() - start < 0.7 + GRACE
    kinds = kinds_of(results)
    assert NotSent in set(kinds) <= {Delivered, Unknown, NotSent}
    said = {event.event_id: kind for event, kind in zip(events, kinds, strict=True)}
    arrived = {event_id for event_id, _ in receiver.received()} - {first.event_id}
    assert {said[event_id] for event_id in arrived} <= {Delivered, Unknown}


def test_ten_thousand_events(receiver, open_http, new_event, publish):
    """Ten thousand events of a hundred keys arrive once, in order per key."""
    events = [new_event("r", f"k{n % 100}", payload=b"%d" % n) for n in range(10_000)]
    results = publish(open_http(receiver.url), events, seconds=60)
    assert set(kinds_of(results)) == {Delivered}
    received = receiver.received()
    assert sorted(event_id for event_id, _ in received) == sorted(e.event_id for e in events)
    by_key: dict[int, list[int]] = defaultdict(list)
    for _, body in received:
        by_key[int(body) % 100].append(int(body))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


@pytest.mark.parametrize(("status", "kind"), [(500, Failed), (404, Rejected)])
def test_a_key_ends_with_its_first_event_that_is_not_delivered(
    open_http, new_event, publish, status, kind
):
    """Nothing of a key follows an event that was not delivered; other keys and events without an
    order go on.
    """
    with Receiver() as server:
        server.answer = lambda request: (status if request.body == b"bad" else 200, {})
        events = [
            new_event("r", "a"),
            new_event("r", "a", payload=b"bad"),
            new_event("r", "b"),
            new_event("r", "a"),
            new_event("r", partition_key="a"),
            new_event("r", "a"),
            new_event("r", "b"),
        ]
        results = publish(open_http(server.url), events)
        expected = [Delivered, kind, Delivered, NotSent, Delivered, NotSent, Delivered]
        assert kinds_of(results) == expected
        assert len(server.requests) == 5


def test_a_rejected_form_ends_its_key_too(open_http, new_event, publish):
    """An event that HTTP cannot carry holds its key as a refused one does."""
    with Receiver() as server:
        events = [new_event("r", "a", headers={"ü": ""}), new_event("r", "a"), new_event("r", "b")]
        assert kinds_of(publish(open_http(server.url), events)) == [Rejected, NotSent, Delivered]


def test_environment_proxies_are_ignored(open_http, new_event, publish, monkeypatch):
    """No environment variable sends events by way of somebody else."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with Receiver() as server:
        assert kinds_of(publish(open_http(server.url), [new_event("r")])) == [Delivered]


def test_probe(full):
    """A receiver that listens passes without getting an event; one that is away or full is one
    sentence, soon.
    """
    with Receiver() as server:
        probe(HttpPublisher, {"url": server.url, "secrets": [SECRET]}, destination="hook")
        time.sleep(0.1)
        assert server.requests == []
    for url in ("http://127.0.0.1:1", full):
        start = time.monotonic()
        with pytest.raises(PublisherUnavailable, match="cannot be reached"):
            probe(HttpPublisher, {"url": url, "secrets": [SECRET]}, destination="hook", timeout=0.5)
        assert time.monotonic() - start < 0.5 + GRACE


def test_errors_and_logs_hold_no_secret(open_http, new_event, publish, caplog):
    """Whatever goes wrong, neither results nor logs show payload, header values, path or secret."""

    def serve(connection, number):
        read_request(connection)
        if number % 2:
            connection.sendall(b"HTTP/1.1 400 canary\r\nx: canary\r\n\r\ncanary")

    with caplog.at_level(logging.DEBUG), RawServer(serve) as server:
        one = open_http(
            f"{server.url}/canary?token=canary",
            headers={"Authorization": "Bearer canary"},
            concurrency=1,
        )
        events = [
            new_event("canary", payload=b"canary", headers={"x": "canary"}, event_id="canary"),
            new_event("canary", payload=b"canary", headers={"x": "canary"}, event_id="canary"),
            new_event("canary/..", payload=b"canary"),
            new_event("canary", headers={"x": "canary\n"}),
        ]
        results = publish(one, events)
    assert kinds_of(results) == [Unknown, Rejected, Rejected, Rejected]
    said = [*(result.error for result in results), caplog.text, repr(one.__dict__)]
    assert not any("canary" in text or SECRET in text for text in said)


def test_publish_before_open_is_a_mistake(new_event):
    """Publishing before `open` says so."""
    with pytest.raises(RuntimeError, match="`open` comes before"):
        HttpPublisher().publish(EventBatch([new_event("r")], deadline=time.monotonic() + 1))
