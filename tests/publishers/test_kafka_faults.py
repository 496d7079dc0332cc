"""Networks that are slow, reset connections or swallow answers; brokers that refuse one topic."""

from __future__ import annotations

import os
import time

import pytest
from tests.publishers.timing import GRACE, MIDDLE

from delta_outbox.publishers import Delivered, Failed, NotSent, Unknown

KEYS = 10


@pytest.fixture
def batch(new_event):
    """Make events that take turns in their keys; their payloads do not compress."""

    def make(topic, count, size=1000):
        return [
            new_event(topic, f"k{number % KEYS}", payload=os.urandom(size))
            for number in range(count)
        ]

    return make


def kinds_of(results):
    """Return the kinds of some results."""
    return {type(result) for result in results}


def test_a_slow_broker_costs_time_only(proxy, new_topic, publisher, publish, batch, check_answers):
    """What a slow network carries within the deadline is delivered, once and in order."""
    events = batch(new_topic(), 200)
    proxy.bytes_per_second = 200_000
    results = publish(publisher(bootstrap_servers=proxy.address), events)
    assert kinds_of(results) == {Delivered}
    check_answers(events, results)


def test_a_broker_too_slow_for_the_deadline(
    proxy, new_topic, publisher, publish, batch, check_answers
):
    """At the deadline what is under way is unknown, the rest is not sent, then or later; the
    events that are left are delivered by the next call.
    """
    events = batch(new_topic(), 4000)
    one = publisher(bootstrap_servers=proxy.address, queue_buffering_max_messages=500)
    publish(one, events[:KEYS])
    proxy.bytes_per_second = 100_000
    start = time.monotonic()
    results = publish(one, events[KEYS:], seconds=MIDDLE)
    assert time.monotonic() - start < MIDDLE + GRACE
    proxy.heal()
    assert kinds_of(results) == {Delivered, Unknown, NotSent}
    check_answers(events[KEYS:], results)
    left = [
        event for event, result in zip(events[KEYS:], results, strict=True) if result == NotSent()
    ]
    again = publish(one, left)
    assert kinds_of(again) == {Delivered}
    check_answers(left, again)


@pytest.mark.parametrize("reset", ["reset_requests", "reset_replies"])
def test_connections_that_are_reset(
    proxy, new_topic, publisher, publish, batch, check_answers, reset
):
    """Connections reset in the middle of a request, or with its answer on the way, cost time:
    every event is delivered once and in order.
    """
    events = batch(new_topic(), 1000)
    one = publisher(bootstrap_servers=proxy.address, batch_num_messages=50)
    publish(one, events[:KEYS])
    getattr(proxy, reset)(4)
    results = publish(one, events[KEYS:])
    assert proxy.resets == 4
    assert kinds_of(results) == {Delivered}
    check_answers(events, [Delivered()] * KEYS + results)


def test_connections_that_are_reset_until_the_deadline(
    proxy, new_topic, publisher, publish, batch, check_answers
):
    """What was taken by a broker whose answers never arrive is unknown, not unsent; the next call
    has a connection of its own.
    """
    events = batch(new_topic(), 200)
    one = publisher(bootstrap_servers=proxy.address)
    publish(one, batch(new_topic(), 1))
    proxy.reset_replies(10**6)
    results = publish(one, events, seconds=MIDDLE)
    assert proxy.resets > 0
    proxy.heal()
    arrived = check_answers(events, results)
    unknown = {
        event.event_id
        for event, result in zip(events, results, strict=True)
        if type(result) is Unknown
    }
    assert arrived & unknown
    assert kinds_of(results) <= {Delivered, Unknown, NotSent}
    assert kinds_of(publish(one, batch(new_topic(), 20))) == {Delivered}


def test_a_flush_with_a_remainder(proxy, new_topic, publisher, publish, batch, check_answers):
    """Of what was handed over, the answered events are delivered and the remainder is unknown."""
    topic, silent = new_topic(), new_topic()
    one = publisher(bootstrap_servers=proxy.address)
    publish(one, [*batch(topic, 1), *batch(silent, 1)])
    answered = batch(topic, 100)
    results = publish(one, answered)
    proxy.holds_replies = True
    remainder = batch(silent, 10)
    start = time.monotonic()
    results += publish(one, remainder, seconds=MIDDLE)
    assert MIDDLE <= time.monotonic() - start < MIDDLE + GRACE
    proxy.heal()
    assert [type(result) for result in results] == [Delivered] * 100 + [Unknown] * 10
    check_answers([*answered, *remainder], results)
    assert kinds_of(publish(one, batch(silent, 10))) == {Delivered}


def test_a_full_queue_is_waited_for(new_topic, publisher, publish, batch, check_answers):
    """A batch many times as large as the client's own queue is delivered, once and in order."""
    events = batch(new_topic(), 5000, size=100)
    results = publish(publisher(queue_buffering_max_messages=50), events)
    assert kinds_of(results) == {Delivered}
    check_answers(events, results)


def test_a_full_queue_ends_at_the_deadline(
    proxy, new_topic, new_event, publisher, publish, check_answers
):
    """With a queue that nothing leaves, what is in it is unknown and what found no place is not
    sent.
    """
    topic = new_topic()
    events = [new_event(topic) for _ in range(500)]
    one = publisher(bootstrap_servers=proxy.address, queue_buffering_max_messages=100)
    publish(one, [new_event(topic)])
    proxy.holds_replies = True
    start = time.monotonic()
    results = publish(one, events, seconds=MIDDLE)
    assert MIDDLE <= time.monotonic() - start < MIDDLE + GRACE
    proxy.heal()
    assert [type(result) for result in results] == [Unknown] * 100 + [NotSent] * 400
    check_answers(events, results)
    assert kinds_of(publish(one, [new_event(topic)])) == {Delivered}


def test_a_topic_that_may_not_be_written(
    new_topic, forbid_writing, publisher, new_event, publish, check_answers
):
    """Where the broker refuses one topic its events fail and hold their keys; the others, before
    and after them, are delivered once.
    """
    topic, forbidden = new_topic(), new_topic()
    forbid_writing(forbidden)
    one = publisher()
    publish(one, [new_event(topic, "warm")])
    events = [new_event(topic, f"k{number % 40}") for number in range(200)]
    events[100:100] = [new_event(forbidden, "k0"), new_event(forbidden, "k1"), new_event(forbidden)]
    results = publish(one, events)
    expected: list[type] = [Delivered] * 100 + [Failed, Failed, Failed]
    expected += [NotSent if number % 40 in (0, 1) else Delivered for number in range(100, 200)]
    assert [type(result) for result in results] == expected
    assert "TOPIC_AUTHORIZATION_FAILED" in results[100].error
    check_answers(events, results)
    assert kinds_of(publish(one, [new_event(topic, "k0"), new_event(topic)])) == {Delivered}
