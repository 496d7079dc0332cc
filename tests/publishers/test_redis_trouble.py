"""Redis that refuses, breaks, freezes or is away."""

from __future__ import annotations

import time

from tests.publishers.proxy import Proxy
from tests.publishers.redis_server import check_answers
from tests.publishers.timing import GRACE, MIDDLE, once, settled

from delta_outbox.publishers import Delivered, Failed, NotSent, Unknown

AT_WORK = 100_000  # bytes of a call that is under way


def test_a_reset_leaves_a_prefix_and_says_so(running_redis, open_redis, new_event, publish):
    """A connection that breaks in the middle of a pipeline: known, unknown and unsent events."""
    with Proxy() as proxy:
        proxy.target = running_redis.port
        one = open_redis(port=proxy.port)
        events = [new_event("s", f"k{n % 300}", payload=b"x" * 50) for n in range(6000)]
        proxy.reset_replies(1)
        results = publish(one, events)
        assert proxy.resets == 1
        found = check_answers(running_redis, events, results)
        kinds = {type(result) for result in results}
        assert found
        assert {Unknown, NotSent} <= kinds <= {Delivered, Unknown, NotSent}
        again = [new_event("t") for _ in range(10)]
        assert {Delivered} == {type(result) for result in publish(one, again)}


def test_a_reset_request_is_not_sent_again(running_redis, open_redis, new_event, publish):
    """A connection that breaks while Redis reads: nothing of the pipeline comes twice."""
    with Proxy() as proxy:
        proxy.target = running_redis.port
        events = [new_event("s", f"k{n % 300}", payload=b"x" * 50) for n in range(6000)]
        proxy.reset_requests(1)
        results = publish(open_redis(port=proxy.port), events)
        assert proxy.resets == 1
        check_answers(running_redis, events, results)
        assert Unknown in {type(result) for result in results}


def test_answers_that_never_come_are_unknown(running_redis, open_redis, new_event, publish):
    """What Redis did and could not say is unknown at the deadline, what never left is not sent."""
    with Proxy() as proxy:
        proxy.target = running_redis.port
        one = open_redis(port=proxy.port)
        publish(one, [new_event("s")])
        events = [new_event("t", f"k{n % 300}", payload=b"x" * 50) for n in range(20_000)]
        start = time.monotonic()
        with once(lambda: proxy.carried > AT_WORK, lambda: setattr(proxy, "holds_replies", True)):
            results = publish(one, events, seconds=MIDDLE)
        assert MIDDLE <= time.monotonic() - start < MIDDLE + GRACE
        check_answers(running_redis, events, results, "t")
        assert {Unknown, NotSent} <= {type(result) for result in results}


def test_a_command_whose_end_is_still_here_is_not_sent(
    running_redis, open_redis, new_event, publish
):
    """At the deadline a command that was handed over in part is not sent: Redis never sees it."""
    with Proxy() as proxy:
        proxy.target = running_redis.port
        one = open_redis(port=proxy.port)
        publish(one, [new_event("s")])
        proxy.bytes_per_second = 50_000
        events = [new_event("t", payload=b"x" * size) for size in (100_000, 30_000_000)]
        first, second = publish(one, events, seconds=1)
        assert isinstance(first, Delivered | Unknown | NotSent)  # as far as a busy machine came
        assert isinstance(second, NotSent)
        proxy.heal()
        time.sleep(0.5)
        with running_redis.client() as client:
            assert client.xlen("t") <= 1


def test_a_server_that_freezes_leaves_events_unknown(running_redis, open_redis, new_event, publish):
    """A server frozen in the middle: unknown at the deadline, and nothing is sent later."""
    one = open_redis()
    publish(one, [new_event("s")])
    events = [new_event("t", f"k{n % 300}", payload=b"x" * 2000) for n in range(30_000)]
    start = time.monotonic()
    with (
        running_redis.client() as client,
        once(lambda: client.xlen("t") > 1000, running_redis.pause),
    ):
        results = publish(one, events, seconds=MIDDLE)
    took = time.monotonic() - start
    running_redis.resume()
    assert MIDDLE <= took < MIDDLE + GRACE
    with running_redis.client() as client:
        settled(lambda: client.xlen("t"))
    check_answers(running_redis, events, results, "t")
    assert {Delivered, Unknown, NotSent} == {type(result) for result in results}
    assert [Delivered] == [type(result) for result in publish(one, [new_event("t")])]


def test_a_server_that_is_frozen_gets_nothing(running_redis, open_redis, new_event, publish):
    """A connection is asked before it is used: without an answer no event leaves."""
    one = open_redis()
    publish(one, [new_event("s")])
    running_redis.pause()
    results = publish(one, [new_event("s", "k"), new_event("s", "k")], seconds=1)
    running_redis.resume()
    assert [Failed, NotSent] == [type(result) for result in results]
    time.sleep(0.3)
    with running_redis.client() as client:
        assert client.xlen("s") == 1


def test_a_server_that_restarts_is_found_again(running_redis, open_redis, new_event, publish):
    """A connection that died between two calls costs nothing: the next call has a new one."""
    one = open_redis()
    publish(one, [new_event("s")])
    running_redis.stop()
    away = publish(one, [new_event("s"), new_event("s", "k"), new_event("s", "k")])
    running_redis.start()
    assert [Failed, Failed, NotSent] == [type(result) for result in away]
    assert f"127.0.0.1:{running_redis.port} is not usable: Connection refused" in away[0].error
    assert [Delivered] == [type(result) for result in publish(one, [new_event("s")])]


def test_a_server_that_dies_in_the_middle_is_told_apart(
    running_redis, open_redis, new_event, publish
):
    """A server killed in the middle: what it said stands, the rest is unknown or not sent."""
    events = [new_event("s", f"k{n % 300}", payload=b"x" * 50) for n in range(40_000)]
    with (
        running_redis.client() as client,
        once(lambda: client.xlen("s") > 1000, running_redis.kill),
    ):
        results = publish(open_redis(), events)
    running_redis.start()
    assert {Delivered, NotSent} <= {type(result) for result in results}
    found = check_answers(running_redis, events, results)
    assert found
