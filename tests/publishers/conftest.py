"""A real Kafka for the whole run, and what its tests share."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Message

from delta_outbox.demo.kafka_reader import consume_all
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.publishers import Event, EventBatch, Result
from delta_outbox.publishers.kafka import KafkaPublisher

CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """Start one broker for all tests; none may leave it stopped."""
    with KafkaServer() as server:
        yield server


@pytest.fixture
def running(kafka: KafkaServer) -> Iterator[KafkaServer]:
    """Give a test the broker to stop or freeze, and start it again afterwards."""
    yield kafka
    if kafka.pid is not None:
        kafka.resume()
    kafka.start()


@pytest.fixture(scope="session")
def new_topic(kafka: KafkaServer) -> Callable[..., str]:
    """Create a topic with a name of its own."""
    numbers = itertools.count()

    def create(partitions: int = 3, **config: str) -> str:
        name = f"test.{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        kafka.create_topic(name, partitions, config=settings)
        return name

    return create


@pytest.fixture
def publisher(kafka: KafkaServer) -> Iterator[Callable[..., KafkaPublisher]]:
    """Open publishers that are closed after the test."""
    opened: list[KafkaPublisher] = []

    def open_one(**settings: Any) -> KafkaPublisher:
        one = KafkaPublisher()
        given = {key.replace("_", "."): value for key, value in settings.items()}
        one.open({"bootstrap.servers": kafka.bootstrap, "topics": ["*"], **given})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def new_event() -> Callable[..., Event]:
    """Make an event whose key is its ordering key, as under strict ordering."""
    numbers = itertools.count()

    def make(route: str, key: str | None = None, **fields: Any) -> Event:
        given: dict[str, Any] = {
            "event_id": f"event-{next(numbers)}",
            "event_type": "flight.departed",
            "key": key,
            "ordering_key": key,
            "payload": b"{}",
            "created_at": CREATED_AT,
            "route": route,
            **fields,
        }
        return Event(**given)

    return make


@pytest.fixture(scope="session")
def publish() -> Callable[..., list[Result]]:
    """Publish events within so many seconds."""

    def call(publisher: KafkaPublisher, events: list[Event], seconds: float = 30) -> list[Result]:
        return publisher.publish(EventBatch(events, deadline=time.monotonic() + seconds))

    return call


@pytest.fixture(scope="session")
def read(kafka: KafkaServer) -> Callable[[str], list[Message]]:
    """Read a topic with a consumer of its own."""
    return lambda topic: list(consume_all(kafka.bootstrap, topic))
