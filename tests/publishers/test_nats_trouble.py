"""NATS that breaks, freezes or is away."""

from __future__ import annotations

import threading
import time
from collections import defaultdict

import pytest
from tests.publishers.proxy import Proxy
from tests.publishers.timing import GRACE, MIDDLE, once, settled

from delta_outbox.core.errors import PublisherUnavailable
from delta_outbox.publishers import Delivered, Failed, NotSent, Unknown
from delta_outbox.publishers.nats.publisher import NatsPublisher
from delta_outbox.publishers.registry import probe

AT_WORK = 100_000  # bytes of a call that is under way


def _check(server, stream, events, results):
    """Compare what was said with what is there; return the ids that are.

    Delivered is there exactly once, Unknown may be, nothing else is; a key is a prefix, in order.
    """
    said = {event.event_id: type(result) for event, result in zip(events, results, strict=True)}
    stored = [message.headers["Nats-Msg-Id"] for message in server.read(stream)]
    found = [name for name in stored if name in said]
    assert len(found) == len(set(found))
    assert {name for name, kind in said.items() if kind is Delivered} <= set(found)
    assert {said[name] for name in found} <= {Delivered, Unknown}
    place = {name: number for number, name in enumerate(found)}
    by_key = defaultdict(list)
    for event in events:
        if event.key is not None:
            by_key[event.key].append(place.get(event.event_id))
    for places in by_key.values():
        there = [number for number in places if number is not None]
        assert there == sorted(there) == places[: len(there)]
    return set(found)


@pytest.mark.parametrize("fault", ["reset_replies", "reset_requests"])
def test_a_reset_is_told_apart(running_nats, new_stream, open_nats, new_event, publish, fault):
    """A connection that breaks: what was acknowledged stands, what was not is unknown or unsent."""
    stream = new_stream()
    with Proxy() as proxy:
        proxy.target = running_nats.port
        one = open_nats(servers=f"nats://{proxy.address}")
        events = [new_event(f"{stream}.a", f"k{n % 500}") for n in range(20_000)]
        publish(one, [new_event(f"{stream}.a")])
        with once(lambda: proxy.carried > AT_WORK, lambda: getattr(proxy, fault)(1)):
            results = publish(one, events)
        assert proxy.resets == 1
        _check(running_nats, stream, events, results)
        kinds = {type(result) for result in results}
        assert {Delivered, Unknown, NotSent} == kinds
        reason = next(result.error for result in results if type(result) is Unknown)
        assert str(reason).startswith("NATS: the connection ended before the answer:")
        again = [new_event(f"{stream}.b") for _ in range(10)]
        assert {Delivered} == {type(result) for result in publish(one, again)}


def test_answers_that_never_come_are_unknown(
    running_nats, new_stream, open_nats, new_event, publish
):
    """What a stream has and could not say is unknown at the deadline, the rest is not sent."""
    stream = new_stream()
    with Proxy() as proxy:
        proxy.target = running_nats.port
        one = open_nats(servers=f"nats://{proxy.address}", max_in_flight=64)
        publish(one, [new_event(f"{stream}.a")])
        events = [new_event(f"{stream}.a", f"k{n % 300}") for n in range(20_000)]
        start = time.monotonic()
        with once(lambda: proxy.carried > AT_WORK, lambda: setattr(proxy, "holds_replies", True)):
            results = publish(one, events, seconds=MIDDLE)
        assert MIDDLE <= time.monotonic() - start < MIDDLE + GRACE
        counts: defaultdict[type, int] = defaultdict(int)
        for result in results:
            counts[type(result)] += 1
        assert counts[Delivered] > 0
        assert 0 < counts[Unknown] <= 64
        assert counts[NotSent] == 20_000 - counts[Delivered] - counts[Unknown]
        _check(running_nats, stream, events, results)


@pytest.mark.parametrize("mode", ["jetstream", "core"])
def test_a_server_that_freezes_leaves_events_unknown(
    running_nats, new_stream, open_nats, new_event, publish, mode
):
    """A server frozen in the middle: unknown at the deadline, and nothing is sent later."""
    stream = new_stream()
    one = open_nats(mode=mode, max_in_flight=300)
    publish(one, [new_event(f"{stream}.a")])
    payload = b"x" * 9000
    events = [new_event(f"{stream}.a", f"k{n % 9000}", payload=payload) for n in range(30_000)]
    start = time.monotonic()
    with once(lambda: running_nats.count(stream) > 1000, running_nats.pause):
        results = publish(one, events, seconds=MIDDLE)
    took = time.monotonic() - start
    running_nats.resume()
    assert MIDDLE <= took < MIDDLE + GRACE
    # On a busy machine the server may be frozen before it has answered for any.
    assert {Unknown, NotSent} <= {type(result) for result in results}
    settled(lambda: running_nats.count(stream))
    _check(running_nats, stream, events, results)
    assert [Delivered] == [type(result) for result in publish(one, [new_event(f"{stream}.a")])]


@pytest.mark.parametrize("mode", ["jetstream", "core"])
def test_a_server_that_is_frozen_gets_nothing(
    running_nats, new_stream, open_nats, new_event, publish, mode
):
    """A connection is asked before it is used: without an answer no event leaves."""
    stream = new_stream()
    one = open_nats(mode=mode)
    publish(one, [new_event(f"{stream}.a")])
    running_nats.pause()
    start = time.monotonic()
    results = publish(
        one, [new_event(f"{stream}.a", "k"), new_event(f"{stream}.a", "k")], seconds=1
    )
    assert time.monotonic() - start < 1 + GRACE
    running_nats.resume()
    assert [Failed, NotSent] == [type(result) for result in results]
    time.sleep(0.3)
    assert len(running_nats.read(stream)) == 1


def test_a_server_that_restarts_is_found_again(
    running_nats, new_stream, open_nats, new_event, publish
):
    """A connection that died between two calls costs nothing: the next call has a new one."""
    stream = new_stream()
    one = open_nats()
    publish(one, [new_event(f"{stream}.a")])
    running_nats.stop()
    events = [
        new_event(f"{stream}.a"),
        new_event(f"{stream}.a", "k"),
        new_event(f"{stream}.a", "k"),
    ]
    away = publish(one, events)
    running_nats.start()
    assert [Failed, Failed, NotSent] == [type(result) for result in away]
    assert f"NATS at {running_nats.url} is not usable: " in away[0].error
    assert "Connect call failed" in away[0].error
    assert [Delivered] == [type(result) for result in publish(one, [new_event(f"{stream}.a")])]


def test_a_server_that_dies_in_the_middle_is_told_apart(
    running_nats, new_stream, open_nats, new_event, publish
):
    """A server killed in the middle: what it said stands, the rest is unknown or not sent.

    It stands still before: a client that is slow itself may have had all its answers.
    """
    stream = new_stream()
    events = [new_event(f"{stream}.a", f"k{n % 300}") for n in range(20_000)]

    def kill_in_the_middle() -> None:
        while running_nats.count(stream) < 300:
            time.sleep(0.01)
        running_nats.pause()
        time.sleep(0.5)
        running_nats.kill()

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    start = time.monotonic()
    results = publish(open_nats(), events)
    assert time.monotonic() - start < GRACE
    killer.join()
    running_nats.start()
    assert {Delivered, Unknown, NotSent} == {type(result) for result in results}
    _check(running_nats, stream, events, results)


def test_the_deadline_ends_a_long_call(running_nats, new_stream, open_nats, new_event, publish):
    """A batch too long for its deadline ends in time, and so does one of a single key."""
    stream = new_stream()
    for key in (None, "k"):
        events = [new_event(f"{stream}.a", key) for n in range(30_000)]
        one = open_nats()
        publish(one, events[:1])  # to connect may take longer than the deadline
        for _ in range(5):
            start = time.monotonic()
            results = publish(one, events, seconds=0.5)
            assert time.monotonic() - start < 0.5 + GRACE
            if {type(result) for result in results} != {Failed}:
                break  # else the server did not answer in time that it is there
        assert NotSent in {type(result) for result in results} <= {Delivered, Unknown, NotSent}
        assert sum(type(result) is Unknown for result in results) <= (256 if key is None else 1)


def test_a_probe_of_nobody_says_the_address():
    """Without a server `probe` fails within its time and names the address."""
    settings = {"servers": "nats://127.0.0.1:1", "subjects": "*"}
    start = time.monotonic()
    with pytest.raises(PublisherUnavailable, match=r"nats://127\.0\.0\.1:1 is not usable"):
        probe(NatsPublisher, settings, destination="default", timeout=2)
    assert time.monotonic() - start < 2 + GRACE


def test_another_server_of_the_list_is_taken(
    running_nats, new_stream, open_nats, new_event, publish
):
    """Of several servers one that answers is enough."""
    stream = new_stream()
    one = open_nats(servers=["nats://127.0.0.1:1", running_nats.url])
    assert [Delivered] == [type(result) for result in publish(one, [new_event(f"{stream}.a")])]
