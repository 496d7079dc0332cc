"""Redis that refuses, breaks, freezes or is away."""

from __future__ import annotations

import threading
import time

import pytest
from tests.publishers.proxy import Proxy
from tests.publishers.redis_server import RedisServer, check_answers

from delta_outbox.publishers import Delivered, Failed, NotSent, Unknown
from delta_outbox.publishers.redis import RedisPublisher


@pytest.fixture(scope="module")
def running():
    """Start one server for the tests of this file."""
    with RedisServer() as one:
        yield one


@pytest.fixture
def server(running):
    """Give a test the server to disturb, and put it right afterwards."""
    yield running
    running.resume()
    running.start()
    with running.client() as client:
        client.replicaof("NO", "ONE")
        for name, value in (("maxmemory", 0), ("min-replicas-to-write", 0)):
            client.config_set(name, value)
        client.flushall()


@pytest.fixture
def publisher(running):
    """Open publishers that are closed after the test."""
    opened = []

    def open_one(**settings):
        one = RedisPublisher()
        one.open({"host": "127.0.0.1", "port": running.port, "streams": ["*"], **settings})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


def test_a_reset_leaves_a_prefix_and_says_so(server, publisher, new_event, publish):
    """A connection that breaks in the middle of a pipeline: known, unknown and unsent events."""
    with Proxy() as proxy:
        proxy.target = server.port
        one = publisher(port=proxy.port)
        events = [new_event("s", f"k{n % 300}", payload=b"x" * 50) for n in range(6000)]
        proxy.reset_replies(1)
        results = publish(one, events)
        assert proxy.resets == 1
        found = check_answers(server, events, results)
        kinds = {type(result) for result in results}
        assert found
        assert {Unknown, NotSent} <= kinds <= {Delivered, Unknown, NotSent}
        again = [new_event("t") for _ in range(10)]
        assert {Delivered} == {type(result) for result in publish(one, again)}


def test_a_reset_request_is_not_sent_again(server, publisher, new_event, publish):
    """A connection that breaks while Redis reads: nothing of the pipeline comes twice."""
    with Proxy() as proxy:
        proxy.target = server.port
        events = [new_event("s", f"k{n % 300}", payload=b"x" * 50) for n in range(6000)]
        proxy.reset_requests(1)
        results = publish(publisher(port=proxy.port), events)
        assert proxy.resets == 1
        check_answers(server, events, results)
        assert Unknown in {type(result) for result in results}


def test_answers_that_never_come_are_unknown(server, publisher, new_event, publish):
    """What Redis did and could not say is unknown at the deadline, what never left is not sent."""
    with Proxy() as proxy:
        proxy.target = server.port
        one = publisher(port=proxy.port)
        publish(one, [new_event("s")])
        events = [new_event("t", f"k{n % 300}", payload=b"x" * 50) for n in range(20_000)]
        timer = threading.Timer(0.1, lambda: setattr(proxy, "holds_replies", True))
        timer.start()
        start = time.monotonic()
        results = publish(one, events, seconds=2)
        assert 2 <= time.monotonic() - start < 3
        timer.join()
        check_answers(server, events, results, "t")
        assert {Unknown, NotSent} <= {type(result) for result in results}


def test_a_command_whose_end_is_still_here_is_not_sent(server, publisher, new_event, publish):
    """At the deadline a command that was handed over in part is not sent: Redis never sees it."""
    with Proxy() as proxy:
        proxy.target = server.port
        one = publisher(port=proxy.port)
        publish(one, [new_event("s")])
        proxy.bytes_per_second = 50_000
        events = [new_event("t", payload=b"x" * size) for size in (100_000, 30_000_000)]
        results = publish(one, events, seconds=1)
        assert [Unknown, NotSent] == [type(result) for result in results]
        proxy.heal()
        time.sleep(0.5)
        with server.client() as client:
            assert client.xlen("t") <= 1


def test_a_server_that_freezes_leaves_events_unknown(server, publisher, new_event, publish):
    """A server frozen in the middle: unknown at the deadline, and nothing is sent later."""
    one = publisher()
    publish(one, [new_event("s")])
    events = [new_event("t", f"k{n % 300}", payload=b"x" * 2000) for n in range(30_000)]
    timer = threading.Timer(0.1, server.pause)
    timer.start()
    start = time.monotonic()
    results = publish(one, events, seconds=2)
    took = time.monotonic() - start
    timer.join()
    server.resume()
    assert 2 <= took < 3
    time.sleep(0.5)
    found = check_answers(server, events, results, "t")
    assert {Delivered, Unknown, NotSent} == {type(result) for result in results}
    time.sleep(0.5)
    assert found == check_answers(server, events, results, "t")
    assert [Delivered] == [type(result) for result in publish(one, [new_event("t")])]


def test_a_server_that_is_frozen_gets_nothing(server, publisher, new_event, publish):
    """A connection is asked before it is used: without an answer no event leaves."""
    one = publisher()
    publish(one, [new_event("s")])
    server.pause()
    results = publish(one, [new_event("s", "k"), new_event("s", "k")], seconds=1)
    server.resume()
    assert [Failed, NotSent] == [type(result) for result in results]
    time.sleep(0.3)
    with server.client() as client:
        assert client.xlen("s") == 1


def test_a_server_that_restarts_is_found_again(server, publisher, new_event, publish):
    """A connection that died between two calls costs nothing: the next call has a new one."""
    one = publisher()
    publish(one, [new_event("s")])
    server.stop()
    away = publish(one, [new_event("s"), new_event("s", "k"), new_event("s", "k")])
    server.start()
    assert [Failed, Failed, NotSent] == [type(result) for result in away]
    assert f"127.0.0.1:{server.port} is not usable: Connection refused" in away[0].error
    assert [Delivered] == [type(result) for result in publish(one, [new_event("s")])]


def test_a_server_that_dies_in_the_middle_is_told_apart(server, publisher, new_event, publish):
    """A server killed in the middle: what it said stands, the rest is unknown or not sent."""
    events = [new_event("s", f"k{n % 300}", payload=b"x" * 50) for n in range(40_000)]
    timer = threading.Timer(0.2, server.kill)
    timer.start()
    results = publish(publisher(), events)
    timer.join()
    server.start()
    assert {Delivered, NotSent} <= {type(result) for result in results}
    found = check_answers(server, events, results)
    assert found


def test_nothing_is_sent_after_the_deadline(server, publisher, new_event, publish):
    """A call whose deadline has passed sends nothing and says so."""
    assert [NotSent()] * 3 == publish(publisher(), [new_event("s")] * 3, seconds=-1)
    with server.client() as client:
        assert client.xlen("s") == 0
