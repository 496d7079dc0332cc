"""The Kafka publisher against the broker inside the client library, which speaks the protocol."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer

from delta_outbox.publishers import (
    Delivered,
    Event,
    EventBatch,
    JsonText,
    NotSent,
    Rejected,
    Unknown,
)
from delta_outbox.publishers.kafka.publisher import KafkaPublisher


def _batch(count: int, seconds: float = 20, **fields) -> EventBatch:
    given = {
        "event_type": "order.created",
        "payload": b"{}",
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "route": "orders",
        **fields,
    }
    events = [Event(event_id=f"e{number}", **given) for number in range(count)]
    return EventBatch(events, deadline=time.monotonic() + seconds)


@contextmanager
def _publisher(*, rtt: int = 0, **settings: object) -> Iterator[KafkaPublisher]:
    cluster = Producer(
        {"test.mock.num.brokers": 3, "test.mock.broker.rtt": rtt, "log_level": 0}  # rtt in ms
    )
    cluster.produce("orders", b"")  # makes the topic
    assert cluster.flush(10) == 0
    brokers = cluster.list_topics(timeout=10).brokers.values()
    addresses = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    one = KafkaPublisher()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    one.open({"bootstrap.servers": addresses, "topics": ["orders"], **given})
    try:
        yield one
    finally:
        one.close()


def test_every_event_gets_its_own_report():
    """Each Delivered has a receipt of its own, over several calls."""
    with _publisher() as one:
        results = one.publish(_batch(1500)) + one.publish(_batch(1500))
    assert {type(result) for result in results} == {Delivered}
    places = {str(result.receipt) for result in results if isinstance(result, Delivered)}
    assert len(places) == 3000


def test_a_report_makes_a_result_like_any_other():
    """What Kafka has acknowledged is a Delivered that nobody can change, with topic, partition and
    offset as JSON.
    """
    with _publisher() as one:
        [result] = one.publish(_batch(1))
    assert isinstance(result, Delivered)
    assert isinstance(result.receipt, JsonText)
    assert {"topic", "partition", "offset"} == set(json.loads(result.receipt))
    assert Delivered(receipt=result.receipt) == result == pickle.loads(pickle.dumps(result))
    with pytest.raises(FrozenInstanceError):
        result.outcome = "x"  # type: ignore[misc]


def test_a_full_queue_is_waited_for():
    """More events than the client's queue holds are sent all the same."""
    with _publisher(queue_buffering_max_messages=50) as one:
        results = one.publish(_batch(2000))
    assert {type(result) for result in results} == {Delivered}


def test_a_large_message_never_leaves():
    """A message above message.max.bytes is rejected here; its payload is not in the error."""
    with _publisher() as one:
        [result] = one.publish(_batch(1, payload=b"SECRET" * 200_000))
    assert isinstance(result, Rejected)
    assert "1200000 bytes" in result.error
    assert "SECRET" not in result.error


def test_a_route_that_is_not_allowed_is_rejected():
    """The allow-list is asked before the broker."""
    with _publisher() as one:
        [result] = one.publish(_batch(1, route="customers"))
    assert result == Rejected(error="the topic 'customers' is not on the allow-list `topics`")


def test_a_slow_broker_leaves_events_unknown():
    """Without an answer at the deadline an event is unknown, and nothing follows it."""
    # As long before the deadline as after it, for a busy machine.
    with _publisher(rtt=600) as one:
        assert [type(result) for result in one.publish(_batch(1))] == [Delivered]
        results = one.publish(_batch(3, seconds=0.3, key="k", ordering_key="k"))
    assert [type(result) for result in results] == [Unknown, NotSent, NotSent]


def test_a_passed_deadline_sends_nothing():
    """After the deadline not even a connection is made."""
    with _publisher() as one:
        assert one.publish(_batch(2, seconds=-1)) == [NotSent(), NotSent()]
        assert one._client is None


def test_publish_needs_open():
    """A publisher that was not opened says so."""
    with pytest.raises(RuntimeError, match="`open` comes before `publish`"):
        KafkaPublisher().publish(_batch(1))
