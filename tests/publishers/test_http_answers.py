"""What a receiver answers, well or badly, decides what becomes of an event."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.publishers.http_server import (
    OK,
    RawServer,
    Receiver,
    read_request,
)

from delta_outbox.publishers import Delivered, Failed, Rejected, Unknown


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_success_is_delivered(post, new_event, status):
    """Every 2xx says that the receiver has taken the event."""
    with Receiver(answer=lambda _: (status, {}), body=b"") as receiver:
        assert post(receiver.url, new_event("r")) == [Delivered(receipt=f'{{"status":{status}}}')]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_trouble_may_pass(post, new_event, status):
    """What may be better later has failed, and the connection goes on."""
    with Receiver(answer=lambda _: (status, {})) as receiver:
        results = post(receiver.url, new_event("r"), new_event("r"), concurrency=1)
        assert results == [Failed(error=f"127.0.0.1:{receiver.port} answered {status}")] * 2
        assert len({request.connection for request in receiver.requests}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 451, 499])
def test_a_no_is_final(post, new_event, status):
    """Every other 4xx says that the event will never be taken as it is."""
    with Receiver(answer=lambda _: (status, {"retry-after": "5"}), body=b"canary") as receiver:
        assert post(receiver.url, new_event("r")) == [
            Rejected(error=f"127.0.0.1:{receiver.port} answered {status}")
        ]


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_redirects_are_not_followed(post, new_event, status):
    """A redirect goes nowhere: it fails, for the settings are wrong and not the event, and the
    place it names, which a stranger chose, is neither asked nor shown.
    """
    with Receiver() as elsewhere, Receiver() as receiver:
        receiver.answer = lambda _: (status, {"location": elsewhere.url + "/canary"})
        receiver.body = b""
        [result] = post(receiver.url, new_event("r"))
        assert isinstance(result, Failed)
        assert f"answered {status}: redirects are not followed" in result.error
        assert "canary" not in result.error
        assert elsewhere.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_in_seconds(post, new_event, status):
    """The wait that a receiver asks for is passed on."""
    with Receiver(answer=lambda _: (status, {"Retry-After": "120"})) as receiver:
        [result] = post(receiver.url, new_event("r"))
        assert result.retry_after == 120


def test_retry_after_as_a_date(post, new_event):
    """A date is turned into seconds from now, one that has passed into none."""
    for seconds, low, high in ((90, 85, 91), (-90, 0, 0)):
        then = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
        answer = (503, {"Retry-After": then})
        with Receiver(answer=lambda _, answer=answer: answer) as receiver:  # type: ignore[misc]
            [result] = post(receiver.url, new_event("r"))
        assert low <= result.retry_after <= high


@pytest.mark.parametrize("value", ["soon", "-1", "1e9", "inf", "", "12345678901", "Foo, 99 Bar"])
def test_a_senseless_retry_after_is_left_out(post, new_event, value):
    """A wait that cannot be read changes nothing: the event has failed."""
    with Receiver(answer=lambda _: (503, {"Retry-After": value})) as receiver:
        [result] = post(receiver.url, new_event("r"))
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


def test_a_long_answer_is_dropped(post, new_event):
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
        results = post(server.url, *[new_event("r") for _ in range(4)], concurrency=1)
        assert [type(result) for result in results] == [Delivered] * 4
        assert server.connections == 4  # none could be used again
        assert len(taken) < 4 * 150


def test_an_answer_that_drips(post, new_event):
    """An answer of one byte at a time is cut off at the limit for the whole request."""

    def serve(connection, _):
        read_request(connection)
        for byte in OK:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)

    with RawServer(serve) as server:
        [result] = post(server.url, new_event("r"), timeout_seconds=1.0)
        assert result == Unknown(error=f"127.0.0.1:{server.port} gave no answer within 1 s")


def test_a_flood_of_informational_answers_ends(post, new_event):
    """A receiver that says "wait" for ever is cut off at the limit for the whole request."""

    def serve(connection, _):
        read_request(connection)
        while True:
            connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)

    with RawServer(serve) as server:
        [result] = post(server.url, new_event("r"), timeout_seconds=0.5)
    assert type(result) is Unknown
