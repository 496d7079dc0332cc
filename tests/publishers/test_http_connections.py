"""Connections: broken before, in and after a request, used again, and how many there are."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace

import pytest
from tests.publishers.http_server import (
    OK,
    SECRET,
    RawServer,
    Receiver,
    ReceiverProcess,
    read_request,
    reset,
)
from tests.publishers.timing import GRACE, MIDDLE

from delta_outbox.publishers import Delivered, EventBatch, Failed, NotSent, Rejected, Unknown
from delta_outbox.publishers.http.call import HttpCall
from delta_outbox.publishers.http.connection import HttpConnection
from delta_outbox.publishers.http.message import http_message
from delta_outbox.publishers.http.publisher import HttpPublisher
from delta_outbox.publishers.http.settings import parse_settings


def test_a_receiver_that_never_answers(post, new_event):
    """Without an answer the event is unknown after the limit, and is not sent again."""

    def serve(connection, _):
        read_request(connection)
        time.sleep(3)

    with RawServer(serve) as server:
        [result] = post(server.url, new_event("r"), timeout_seconds=0.5)
        assert result == Unknown(error=f"127.0.0.1:{server.port} gave no answer within 0.5 s")
        assert server.connections == 1


def test_a_reset_instead_of_an_answer(post, new_event):
    """A connection reset after the request leaves open what became of it; nothing is repeated."""

    def serve(connection, _):
        read_request(connection)
        reset(connection)

    with RawServer(serve) as server:
        [result] = post(server.url, new_event("r"))
        assert isinstance(result, Unknown)
        assert "without an answer" in str(result.error)
        assert server.connections == 1


def test_a_reset_in_the_middle_of_a_request(post, new_event):
    """A request of which a part was taken is unknown: who knows what the receiver does with it."""

    def serve(connection, _):
        connection.recv(100)
        reset(connection)

    with RawServer(serve) as server:
        [result] = post(server.url, new_event("r", payload=b"x" * 10_000_000))
        assert type(result) is Unknown
        assert server.connections == 1


@pytest.mark.parametrize("status", [413, 429])
def test_a_no_in_the_middle_of_a_request_is_heard(post, new_event, status):
    """A receiver that refuses a large event before it has all of it is understood."""

    def serve(connection, _):
        connection.recv(100)
        head = f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        connection.sendall(head.encode())
        time.sleep(0.2)

    with RawServer(serve) as server:
        [result] = post(server.url, new_event("r", payload=b"x" * 20_000_000))
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
        connection = HttpConnection(replace(settings, target=target), until=until)
        connected.set()
        assert broken.wait(5)
        message = http_message(new_event("r"), settings)
        assert connection.exchange(message, until=until, timeout=5).status == 413


def test_a_yes_in_the_middle_of_a_request_is_none(post, new_event):
    """A 2xx from a receiver that goes before it has the whole event is no delivery."""

    def serve(connection, _):
        connection.recv(100)
        connection.sendall(OK)
        time.sleep(0.2)
        reset(connection)

    with RawServer(serve) as server:
        [result] = post(server.url, new_event("r", payload=b"x" * 20_000_000))
    assert type(result) is Unknown


def test_an_answer_nobody_asked_for_answers_nothing(post, new_event):
    """A second answer to one request is not taken for the answer to the next."""

    def serve(connection, number):
        read_request(connection)
        connection.sendall(OK + OK if number == 0 else OK.replace(b"200 OK", b"500 No"))
        read_request(connection)

    with RawServer(serve) as server:
        results = post(server.url, new_event("r", "k"), new_event("r", "k"), concurrency=1)
    assert [type(result) for result in results] == [Delivered, Failed]


def test_connections_are_used_again(post, new_event):
    """A hundred events in a row need one connection."""
    with Receiver() as receiver:
        events = [new_event("r", "k", payload=b"%d" % number) for number in range(100)]
        results = post(receiver.url, *events)
        assert {type(result) for result in results} == {Delivered}
        assert len({request.connection for request in receiver.requests}) == 1
        assert [int(request.body) for request in receiver.requests] == list(range(100))


def test_a_connection_closed_after_each_answer(post, new_event):
    """A receiver that closes without announcing it loses no event and gets none twice."""
    received = []

    def serve(connection, _):
        received.append(read_request(connection))
        connection.sendall(OK)
        connection.close()

    with RawServer(serve) as server:
        results = post(server.url, *[new_event("r", "k") for _ in range(50)])
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
        used = LookedAtTooEarly(settings, until=time.monotonic() + 5)
        connected.set()
        assert broken.wait(5)
        events = EventBatch([new_event("r")], deadline=time.monotonic() + 5)
        [result] = HttpCall(events, settings=settings, idle=[used]).run()
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


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_at_once_than_the_settings_say(open_http, new_event, publish, concurrency):
    """A receiver sees at most `concurrency` requests at once, and as many where there is work."""
    together = threading.Barrier(concurrency)
    with Receiver() as server:

        def answer(_):
            together.wait(GRACE)
            return 200, {}

        server.answer = answer
        results = publish(
            open_http(server.url, concurrency=concurrency), [new_event("r") for _ in range(30)]
        )
        assert {type(result) for result in results} == {Delivered}
        assert server.most_at_once == concurrency
        assert len({request.connection for request in server.requests}) == concurrency


def test_a_receiver_short_of_connections_still_gets_its_events(open_http, new_event, publish):
    """Where only two connections are taken, those carry all events but the few that waited for
    another one.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)

    def serve():
        connection, _ = listener.accept()
        with connection:
            while read_request(connection):
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    threads = [threading.Thread(target=serve) for _ in range(2)]
    for thread in threads:
        thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    one = open_http(url, concurrency=6, timeout_seconds=MIDDLE)
    results = publish(one, [new_event("r") for _ in range(300)])
    kinds = [type(result) for result in results]
    one.close()
    for thread in threads:
        thread.join()
    listener.close()
    assert kinds.count(Delivered) >= 296
    assert Failed in kinds
    assert set(kinds) <= {Delivered, Unknown, Failed}
