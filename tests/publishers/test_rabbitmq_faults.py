"""What happens to events while RabbitMQ or the way to it fails."""

from __future__ import annotations

import time
from collections import defaultdict

import pytest
from tests.publishers.rabbitmq_server import PASSWORD, USER
from tests.publishers.timing import GRACE, MIDDLE, once

from delta_outbox.publishers import Delivered, Failed, NotSent, Unknown
from delta_outbox.publishers.rabbitmq.call import WINDOW
from delta_outbox.publishers.rabbitmq.publisher import RabbitPublisher

AT_WORK = 100_000  # bytes of a call that is under way


def kinds_of(results):
    """Return the classes of results."""
    return {type(result) for result in results}


@pytest.fixture
def check(received):
    """Compare what a publisher said with what is in the queue: Delivered is there exactly once,
    Unknown may be, nothing else is, and keys have no gap.
    """

    def compare(queue, events, results):
        kinds = dict(zip((e.event_id for e in events), map(type, results), strict=True))
        found = [properties.message_id for properties, _ in received(queue)]
        mine = [one for one in found if one in kinds]
        assert len(mine) == len(set(mine))
        assert {one for one, kind in kinds.items() if kind is Delivered} <= set(mine)
        assert {kinds[one] for one in mine} <= {Delivered, Unknown}
        keys = {event.event_id: event.key for event in events}
        arrived, appended = defaultdict(list), defaultdict(list)
        for one in mine:
            arrived[keys[one]].append(one)
        for one in kinds:
            appended[keys[one]].append(one)
        for key, ids in appended.items():
            if key is not None:
                assert arrived[key] == ids[: len(arrived[key])]
                said = [kinds[one] for one in ids]
                assert said == sorted(said, key=[Delivered, Unknown, Failed, NotSent].index)

    return compare


def test_frozen_ends_at_the_deadline(
    running_rabbit, new_queue, open_rabbit, new_event, publish, check, depth
):
    """With a broker that freezes in the middle the call ends at the deadline: what was under way
    is unknown, the rest was not sent, and nothing of it is sent later.
    """
    queue, one = new_queue(), open_rabbit()
    publish(one, [new_event(queue)])
    events = [new_event(queue, f"k{number % 4000}") for number in range(20_000)]
    start = time.monotonic()
    with once(lambda: depth(queue) > 100, running_rabbit.pause):
        results = publish(one, events, seconds=MIDDLE)
    assert MIDDLE <= time.monotonic() - start < MIDDLE + GRACE
    assert {Unknown, NotSent} <= kinds_of(results) <= {Delivered, Unknown, NotSent}
    assert sum(type(result) is Unknown for result in results) <= WINDOW
    running_rabbit.resume()
    time.sleep(0.5)
    check(queue, events, results)
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


def test_frozen_before_the_call(running_rabbit, new_queue, open_rabbit, new_event, publish):
    """A connection is asked before anything is sent: with a frozen broker all fail, none is
    unknown, and once it goes on all is delivered.
    """
    queue, one = new_queue(), open_rabbit()
    publish(one, [new_event(queue)])
    running_rabbit.pause()
    start = time.monotonic()
    results = publish(one, [new_event(queue), new_event(queue)], seconds=1)
    assert time.monotonic() - start < 1 + GRACE
    assert kinds_of(results) == {Failed}
    running_rabbit.resume()
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


@pytest.mark.parametrize("how", [pytest.param("stop", marks=pytest.mark.rest), "kill"])
def test_stopped_in_the_middle(
    how, running_rabbit, new_queue, open_rabbit, new_event, publish, check, depth
):
    """When the broker ends in the middle, what was under way is unknown and the rest was not sent;
    after its start the same publisher goes on.
    """
    queue, one = new_queue(), open_rabbit()
    publish(one, [new_event(queue)])
    running_rabbit.write_down()
    events = [new_event(queue, f"k{number % 4000}") for number in range(30_000)]
    with once(lambda: depth(queue) > 100, getattr(running_rabbit, how)):
        results = publish(one, events, seconds=60)
    assert NotSent in kinds_of(results)
    assert kinds_of(results) <= {Delivered, Unknown, NotSent}
    assert kinds_of(publish(one, [new_event(queue)], seconds=5)) == {Failed}
    running_rabbit.start()
    check(queue, events, results)
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


@pytest.mark.rest
def test_stopped_between_two_calls(running_rabbit, new_queue, open_rabbit, new_event, publish):
    """A broker that was restarted between two calls costs no event an attempt."""
    queue, one = new_queue(), open_rabbit()
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}
    running_rabbit.stop()
    running_rabbit.start()
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


def test_an_answer_that_is_lost(rabbit_proxy, new_queue, open_rabbit, new_event, publish, received):
    """Where the connection breaks after a message was sent, it is unknown, and not sent again."""
    queue = new_queue()
    one = open_rabbit(port=rabbit_proxy.port)
    publish(one, [new_event(queue, payload=b"x" * 10_000)])
    rabbit_proxy.reset_replies(1)
    rabbit_proxy.resets = 0
    results = publish(one, [new_event(queue)])
    # The question before the batch met the reset: a new connection was made.
    assert rabbit_proxy.resets == 1
    assert kinds_of(results) == {Delivered}
    event = new_event(queue)
    before = rabbit_proxy.carried
    with once(
        lambda: rabbit_proxy.carried > before + AT_WORK, lambda: rabbit_proxy.reset_replies(1)
    ):
        results = publish(one, [new_event(queue, payload=b"y" * 9000) for _ in range(20_000)])
    assert {Unknown, NotSent} <= kinds_of(results) <= {Delivered, Unknown, NotSent}
    assert kinds_of(publish(one, [event])) == {Delivered}
    ids = [properties.message_id for properties, _ in received(queue)]
    assert len(ids) == len(set(ids))
    assert ids.count(event.event_id) == 1


def test_a_request_that_is_cut(rabbit_proxy, new_queue, open_rabbit, new_event, publish, check):
    """Where the connection breaks within a message, results and queue agree."""
    queue = new_queue()
    one = open_rabbit(port=rabbit_proxy.port)
    publish(one, [new_event(queue, payload=b"x" * 10_000)])
    events = [new_event(queue, f"k{number % 900}", payload=b"z" * 2000) for number in range(5000)]
    before = rabbit_proxy.carried
    with once(
        lambda: rabbit_proxy.carried > before + AT_WORK, lambda: rabbit_proxy.reset_requests(1)
    ):
        results = publish(one, events)
    assert rabbit_proxy.resets == 1
    assert Unknown in kinds_of(results)
    time.sleep(0.3)
    check(queue, events, results)


def test_a_slow_network_ends_at_the_deadline(
    rabbit_proxy, new_queue, open_rabbit, new_event, publish, check
):
    """What has not left this process at the deadline never leaves it."""
    queue = new_queue()
    one = open_rabbit(port=rabbit_proxy.port)
    publish(one, [new_event(queue)])
    rabbit_proxy.bytes_per_second = 200_000
    events = [new_event(queue, payload=b"x" * 100_000) for _ in range(50)]
    start = time.monotonic()
    results = publish(one, events, seconds=2)
    assert 2 <= time.monotonic() - start < 2 + GRACE
    assert kinds_of(results) >= {Unknown, NotSent}
    rabbit_proxy.heal()
    time.sleep(0.5)
    check(queue, events, results)
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}


def test_an_idle_connection(rabbit, new_queue, new_event, publish, received):
    """A connection that the broker has closed for want of heartbeats is replaced before anything
    is sent.
    """
    queue, one = new_queue(), RabbitPublisher()
    settings = {"host": "127.0.0.1", "port": rabbit.port, "username": USER, "password": PASSWORD}
    one.open({**settings, "heartbeat": 1})
    publish(one, [new_event(queue)])
    time.sleep(5)
    assert kinds_of(publish(one, [new_event(queue)])) == {Delivered}
    assert len(received(queue)) == 2
    one.close()
