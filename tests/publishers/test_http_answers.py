"""What a receiver answers, well or badly, decides what becomes of an event."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.publishers.http_server import (
    SECRET,
    RawServer,
    Receiver,
    ReceiverProcess,
    read_request,
    reset,
)

from delta_outbox.publishers import Delivered, EventBatch, Failed, NotSent, Rejected, Unknown
from delta_outbox.publishers.http import HttpPublisher
from delta_outbox.publishers.http_call import HttpCall
from delta_outbox.publishers.http_connection import HttpConnection
from delta_outbox.publishers.http_message import http_message
from delta_outbox.publishers.http_settings import parse_settings

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
def send(publish):
    """Publish events to a URL and return the results."""

    def call(url, *events, seconds=30, **settings):
        one = HttpPublisher()
        one.open({"url": url, "secrets": [SECRET], **settings})
        try:
            return publish(one, list(events), seconds)
        finally:
            one.close()

    return call


@pytest.fixture
def say(send, new_event):
    """Answer a request with some bytes, end the connection, and return the result."""

    def call(data, **settings):
        def serve(connection, _):
            read_request(connection)
            connection.sendall(data)

        with RawServer(serve) as server:
            [result] = send(server.url, new_event("r"), **settings)
            assert server.connections == 1
        return result

    return call


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_success_is_delivered(send, new_event, status):
    """Every 2xx says that the receiver has taken the event."""
    with Receiver(answer=lambda _: (status, {}), body=b"") as receiver:
        assert send(receiver.url, new_event("r")) == [Delivered(receipt=f'{{"status":{status}}}')]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_trouble_may_pass(send, new_event, status):
    """What may be better later has failed, and the connection goes on."""
    with Receiver(answer=lambda _: (status, {})) as receiver:
        results = send(receiver.url, new_event("r"), new_event("r"), concurrency=1)
        assert results == [Failed(error=f"127.0.0.1:{receiver.port} answered {status}")] * 2
        assert len({request.connection for request in receiver.requests}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 451, 499])
def test_a_no_is_final(send, new_event, status):
    """Every other 4xx says that the event will never be taken as it is."""
    with Receiver(answer=lambda _: (status, {"retry-after": "5"}), body=b"canary") as receiver:
        assert send(receiver.url, new_event("r")) == [
            Rejected(error=f"127.0.0.1:{receiver.port} answered {status}")
        ]


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_redirects_are_not_followed(send, new_event, status):
    """A redirect goes nowhere: it fails, for the settings are wrong and not the event, and the
    place it names, which a stranger chose, is neither asked nor shown.
    """
    with Receiver() as elsewhere, Receiver() as receiver:
        receiver.answer = lambda _: (status, {"location": elsewhere.url + "/canary"})
        receiver.body = b""
        [result] = send(receiver.url, new_event("r"))
        assert isinstance(result, Failed)
        assert f"answered {status}: redirects are not followed" in result.error
        assert "canary" not in result.error
        assert elsewhere.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_in_seconds(send, new_event, status):
    """The wait that a receiver asks for is passed on."""
    with Receiver(answer=lambda _: (status, {"Retry-After": "120"})) as receiver:
        [result] = send(receiver.url, new_event("r"))
        assert result.retry_after == 120


def test_retry_after_as_a_date(send, new_event):
    """A date is turned into seconds from now, one that has passed into none."""
    for seconds, low, high in ((90, 85, 91), (-90, 0, 0)):
        then = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
        answer = (503, {"Retry-After": then})
        with Receiver(answer=lambda _, answer=answer: answer) as receiver:  # type: ignore[misc]
            [result] = send(receiver.url, new_event("r"))
        assert low <= result.retry_after <= high


@pytest.mark.parametrize("value", ["soon", "-1", "1e9", "inf", "", "12345678901", "Foo, 99 Bar"])
def test_a_senseless_retry_after_is_left_out(send, new_event, value):
    """A wait that cannot be read changes nothing: the event has failed."""
    with Receiver(answer=lambda _: (503, {"Retry-After": value})) as receiver:
        [result] = send(receiver.url, new_event("r"))
        assert result == Failed(error=f"127.0.0.1:{receiver.port} answered 503")


@pytest.mark.parametrize("code", [100, 102, 103, 199])
def test_what_comes_before_the_answer_says_nothing(say, code):
    """Informational answers, several even, are passed over; the final one counts."""
    first = f"HTTP/1.1 {code} Wait\r\nlink: x\r\n\r\n".encode()
    assert type(say(first * 3 + OK)) is Delivered
    assert type(say(first + b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")) is Failed


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    ],
)
def test_an_answer_that_is_none_is_unknown(say, data):
    """An answer that is cut off or no HTTP leaves open what became of the event."""
    assert type(say(data)) is Unknown


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.0 200 OK\r\n\r\n",
    ],
)
def test_the_head_of_an_answer_is_the_answer(say, data):
    """A body that is cut off or broken takes nothing back of a 2xx."""
    assert type(say(data)) is Delivered


def test_an_answer_beyond_599_has_failed(say):
    """A status that HTTP does not know counts as the receiver's own trouble."""
    assert type(say(b"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n")) is Failed


def test_a_long_answer_is_dropped(send, new_event):
    """A body without end costs neither time nor memory: it is not read to its end."""
    taken = []

    def serve(connection, _):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
                taken.append(1)

    with RawServer(serve) as server:
        start = time.monotonic()
        results = send(server.url, *[new_event("r") for _ in range(4)], concurrency=1)
        assert [type(result) for result in results] == [Delivered] * 4
        assert time.monotonic() - start < 3
        assert server.connections == 4  # none could be used again
        assert len(taken) < 4 * 150


def test_an_answer_that_drips(send, new_event):
    """An answer of one byte at a time is cut off at the limit for the whole request."""

    def serve(connection, _):
        read_request(connection)
        for byte in OK:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)

    with RawServer(serve) as server:
        start = time.monotonic()
        [result] = send(server.url, new_event("r"), timeout_seconds=1.0)
        assert 1.0 <= time.monotonic() - start < 3
        assert result == Unknown(error=f"127.0.0.1:{server.port} gave no answer within 1 s")


def test_a_flood_of_informational_answers_ends(send, new_event):
    """A receiver that says "wait" for ever is cut off at the limit for the whole request."""

    def serve(connection, _):
        read_request(connection)
        while True:
            connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)

    with RawServer(serve) as server:
        start = time.monotonic()
        [result] = send(server.url, new_event("r"), timeout_seconds=0.5)
        assert time.monotonic() - start < 2.5
    assert type(result) is Unknown


def test_a_receiver_that_never_answers(send, new_event):
    """Without an answer the event is unknown after the limit, and is not sent again."""

    def serve(connection, _):
        read_request(connection)
        time.sleep(3)

    with RawServer(serve) as server:
        start = time.monotonic()
        [result] = send(server.url, new_event("r"), timeout_seconds=0.5)
        assert 0.5 <= time.monotonic() - start < 2.5
        assert type(result) is Unknown
        assert server.connections == 1


def test_a_reset_instead_of_an_answer(send, new_event):
    """A connection reset after the request leaves open what became of it; nothing is repeated."""

    def serve(connection, _):
        read_request(connection)
        reset(connection)

    with RawServer(serve) as server:
        [result] = send(server.url, new_event("r"))
        assert isinstance(result, Unknown)
        assert "without an answer" in str(result.error)
        assert server.connections == 1


def test_a_reset_in_the_middle_of_a_request(send, new_event):
    """A request of which a part was taken is unknown: who knows what the receiver does with it."""

    def serve(connection, _):
        connection.recv(100)
        reset(connection)

    with RawServer(serve) as server:
        [result] = send(server.url, new_event("r", payload=b"x" * 10_000_000))
        assert type(result) is Unknown
        assert server.connections == 1


@pytest.mark.parametrize("status", [413, 429])
def test_a_no_in_the_middle_of_a_request_is_heard(send, new_event, status):
    """A receiver that refuses a large event before it has all of it is understood."""

    def serve(connection, _):
        connection.recv(100)
        head = f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        connection.sendall(head.encode())
        time.sleep(0.2)

    with RawServer(serve) as server:
        start = time.monotonic()
        [result] = send(server.url, new_event("r", payload=b"x" * 20_000_000))
        assert time.monotonic() - start < 5
    assert type(result) is (Rejected if status == 413 else Failed)
    assert f"answered {status}" in result.error


def test_a_no_before_the_connection_broke_is_heard(new_event):
    """A no that has come is understood although the connection takes nothing of the event."""
    settings = parse_settings({"url": "http://127.0.0.1:1", "secrets": [SECRET]})
    connected, broken = threading.Event(), threading.Event()

    def serve(connection, _):
        connected.wait(5)
        connection.sendall(b"HTTP/1.1 413 No\r\ncontent-length: 0\r\n\r\n")
        reset(connection)
        broken.set()

    with RawServer(serve) as server:
        target = replace(settings.target, port=server.port)
        until = time.monotonic() + 5
        connection = HttpConnection(replace(settings, target=target), None, until=until)
        connected.set()
        assert broken.wait(5)
        message = http_message(new_event("r"), settings)
        assert connection.exchange(message, until=until, timeout=5).status == 413


def test_a_yes_in_the_middle_of_a_request_is_none(send, new_event):
    """A 2xx from a receiver that goes before it has the whole event is no delivery."""

    def serve(connection, _):
        connection.recv(100)
        connection.sendall(OK)
        time.sleep(0.2)
        reset(connection)

    with RawServer(serve) as server:
        [result] = send(server.url, new_event("r", payload=b"x" * 20_000_000))
    assert type(result) is Unknown


def test_an_answer_nobody_asked_for_answers_nothing(send, new_event):
    """A second answer to one request is not taken for the answer to the next."""

    def serve(connection, number):
        read_request(connection)
        connection.sendall(OK + OK if number == 0 else OK.replace(b"200 OK", b"500 No"))
        read_request(connection)

    with RawServer(serve) as server:
        results = send(server.url, new_event("r", "k"), new_event("r", "k"), concurrency=1)
    assert [type(result) for result in results] == [Delivered, Failed]


def test_connections_are_used_again(send, new_event):
    """A hundred events in a row need one connection."""
    with Receiver() as receiver:
        events = [new_event("r", "k", payload=b"%d" % number) for number in range(100)]
        results = send(receiver.url, *events)
        assert {type(result) for result in results} == {Delivered}
        assert len({request.connection for request in receiver.requests}) == 1
        assert [int(request.body) for request in receiver.requests] == list(range(100))


def test_a_connection_closed_after_each_answer(send, new_event):
    """A receiver that closes without announcing it loses no event and gets none twice."""
    received = []

    def serve(connection, _):
        received.append(read_request(connection))
        connection.sendall(OK)
        connection.close()

    with RawServer(serve) as server:
        results = send(server.url, *[new_event("r", "k") for _ in range(50)])
        kinds = [type(result) for result in results]
        # Between the look at the connection and the request it may be closed: that is Unknown.
        delivered = kinds.count(Delivered)
        assert kinds[:delivered] == [Delivered] * delivered
        assert set(kinds[delivered:]) <= {Unknown, NotSent}
        assert kinds.count(Unknown) <= 1
        assert len([one for one in received if one]) == delivered


def test_a_connection_that_was_closed_while_idle(new_event, publish):
    """A connection that the receiver has closed between two calls is replaced before anything is
    sent: nothing is lost, nothing unknown.
    """
    with ReceiverProcess() as receiver:
        one = HttpPublisher()
        one.open({"url": receiver.url, "secrets": [SECRET]})
        assert [type(r) for r in publish(one, [new_event("r", payload=b"1")])] == [Delivered]
        receiver.kill()
        receiver.start()
        assert [type(r) for r in publish(one, [new_event("r", payload=b"2")])] == [Delivered]
        assert [body for _, body in receiver.received()] == [b"1", b"2"]
        one.close()


class LookedAtTooEarly(HttpConnection):
    """A connection that broke just after the look at it."""

    was_looked_at = False

    def is_reusable(self):
        before, self.was_looked_at = self.was_looked_at, True
        return super().is_reusable() if before else True


def test_a_connection_that_takes_nothing_is_replaced(new_event):
    """An event of which a used connection took not a byte is sent by a new one, once."""
    connected, broken = threading.Event(), threading.Event()
    received = []

    def serve(connection, number):
        if number == 0:
            connected.wait(5)
            reset(connection)
            broken.set()
        else:
            received.append(read_request(connection))
            connection.sendall(OK)

    with RawServer(serve) as server:
        settings = parse_settings({"url": server.url, "secrets": [SECRET]})
        used = LookedAtTooEarly(settings, None, until=time.monotonic() + 5)
        connected.set()
        assert broken.wait(5)
        events = EventBatch([new_event("r")], deadline=time.monotonic() + 5)
        [result] = HttpCall(events, settings=settings, context=None, idle=[used]).run()
        assert type(result) is Delivered
        assert len(received) == 1
        assert server.connections == 2


def test_a_connection_that_dies_under_a_request_is_unknown(new_event, publish):
    """A used connection that takes the request and dies is unknown: it is not sent again."""
    requests = []

    def serve(connection, number):
        while data := read_request(connection):
            requests.append(data)
            if len(requests) == 2:
                return
            connection.sendall(OK)

    with RawServer(serve) as server:
        one = HttpPublisher()
        one.open({"url": server.url, "secrets": [SECRET], "concurrency": 1})
        results = publish(one, [new_event("r") for _ in range(4)])
        one.close()
        assert [type(result) for result in results] == [Delivered, Unknown, Delivered, Delivered]
        assert len(requests) == 4
        assert server.connections == 2
