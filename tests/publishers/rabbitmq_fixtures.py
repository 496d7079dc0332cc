"""A real RabbitMQ for the whole run, and what its tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from tests.publishers.proxy import Proxy
from tests.publishers.rabbitmq_server import PASSWORD, USER, RabbitServer

from delta_outbox.publishers.rabbitmq.publisher import RabbitPublisher

Message = tuple[pika.BasicProperties, bytes]


def connect(server: RabbitServer) -> pika.BlockingConnection:
    """Return a connection of the tests' own."""
    credentials = pika.PlainCredentials(USER, PASSWORD)
    return pika.BlockingConnection(
        # Between two questions nobody answers heartbeats.
        pika.ConnectionParameters("127.0.0.1", server.port, credentials=credentials, heartbeat=0)
    )


def declare(server: RabbitServer, queue: str, **arguments: Any) -> None:
    """Create a durable queue."""
    with connect(server) as connection:
        connection.channel().queue_declare(queue, durable=True, arguments=arguments)


@pytest.fixture(scope="session")
def rabbit() -> Iterator[RabbitServer]:
    """Start one broker for all tests: the Erlang VM takes seconds; none may leave it stopped."""
    with RabbitServer() as server:
        yield server


@pytest.fixture
def running_rabbit(rabbit: RabbitServer) -> Iterator[RabbitServer]:
    """Give a test the broker to stop or freeze, and start it again afterwards."""
    yield rabbit
    rabbit.resume()
    rabbit.start()


@pytest.fixture
def rabbit_proxy(rabbit: RabbitServer) -> Iterator[Proxy]:
    """Give a test a way to the broker to disturb."""
    with Proxy() as proxy:
        proxy.target = rabbit.port
        yield proxy


@pytest.fixture(scope="session")
def new_queue(rabbit: RabbitServer) -> Callable[..., str]:
    """Create a durable queue with a name of its own."""
    numbers = itertools.count()

    def create(**arguments: Any) -> str:
        name = f"test.{next(numbers)}"
        given = {key.replace("_", "-"): value for key, value in arguments.items()}
        declare(rabbit, name, **given)
        return name

    return create


@pytest.fixture
def open_rabbit(rabbit: RabbitServer) -> Iterator[Callable[..., RabbitPublisher]]:
    """Open publishers that are closed after the test."""
    opened: list[RabbitPublisher] = []

    def open_one(**settings: Any) -> RabbitPublisher:
        one = RabbitPublisher()
        mine = {"host": "127.0.0.1", "port": rabbit.port, "username": USER, "password": PASSWORD}
        one.open({**mine, **settings})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def depth(rabbit: RabbitServer) -> Callable[[str], int]:
    """Say how many messages a queue holds."""

    def count(queue: str) -> int:
        with connect(rabbit) as connection:
            declared = connection.channel().queue_declare(queue, passive=True)
        found: int = declared.method.message_count
        return found

    return count


@pytest.fixture(scope="session")
def received(rabbit: RabbitServer) -> Callable[[str], list[Message]]:
    """Take everything out of a queue."""

    def read(queue: str) -> list[Message]:
        found: list[Message] = []
        with connect(rabbit) as connection:
            channel = connection.channel()
            while True:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return found
                assert properties is not None
                assert body is not None
                found.append((properties, body))

    return read
