"""The destinations beside Kafka, each with a server of its own, read by a client of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import boto3
from nats.aio.client import Client
from nats.js import JetStreamContext
from tests.publishers.http_server import SECRET, ReceiverProcess
from tests.publishers.local_server import ServerNotStarted
from tests.publishers.nats_server import NatsServer
from tests.publishers.rabbitmq_fixtures import connect
from tests.publishers.rabbitmq_server import PASSWORD, USER, RabbitNotStarted, RabbitServer
from tests.publishers.redis_server import RedisServer
from tests.publishers.sqs_fixtures import ACCESS
from tests.publishers.sqs_server import MotoServer

NOT_THERE: Final = (ServerNotStarted, RabbitNotStarted)
"""What says that a server is missing and cannot be installed."""

_AT_ONCE: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where events go.

    Args:
        type: of the publisher.
        settings: of the publisher.
        received: gives the ids of the events that are there, in any order.
    """

    type: str
    settings: Mapping[str, object]
    received: Callable[[], Iterator[str]]


@contextlib.contextmanager
def redis(route: str) -> Iterator[Destination]:
    """Run a Redis and give a stream of it.

    Args:
        route: its name.
    """
    with RedisServer() as server, server.client() as client:
        reader: Any = client  # typed for clients of every kind at once

        def received() -> Iterator[str]:
            last = "-"
            while entries := reader.xrange(route, min=last, count=_AT_ONCE):
                for place, fields in entries:
                    yield fields[b"id"].decode()
                    last = f"({place.decode()}"

        settings = {"host": "127.0.0.1", "port": server.port, "streams": [route]}
        yield Destination(type="redis", settings=settings, received=received)


@contextlib.contextmanager
def nats(route: str) -> Iterator[Destination]:
    """Run a NATS and give a stream of it.

    Args:
        route: its subject.
    """
    with NatsServer("max_pending: 256MB") as server:
        server.add_stream("bench", route)

        def received() -> Iterator[str]:
            found: list[str] = server.ask(_read_stream)
            yield from found

        settings = {"servers": [server.url], "subjects": [route]}
        yield Destination(type="nats", settings=settings, received=received)


async def _read_stream(client: Client, js: JetStreamContext) -> list[str]:
    del client
    info = await js.stream_info("bench")
    reader = await js.pull_subscribe(">", stream="bench")
    found: list[str] = []
    while len(found) < info.state.messages:
        messages = await reader.fetch(_AT_ONCE, timeout=10)
        found += [(message.headers or {})["Nats-Msg-Id"] for message in messages]
        await asyncio.gather(*(message.ack() for message in messages))
    return found


@contextlib.contextmanager
def rabbitmq(route: str) -> Iterator[Destination]:
    """Run a RabbitMQ and give a durable queue of it.

    Args:
        route: its name.
    """
    with RabbitServer() as server:
        with connect(server) as connection:
            connection.channel().queue_declare(route, durable=True)

        def received() -> Iterator[str]:
            with connect(server) as connection:
                channel = connection.channel()
                channel.basic_qos(prefetch_count=_AT_ONCE)
                for method, properties, _ in channel.consume(route, inactivity_timeout=5):
                    if method is None or method.delivery_tag is None or properties is None:
                        return
                    channel.basic_ack(method.delivery_tag)
                    yield properties.message_id or ""

        login = {"username": USER, "password": PASSWORD}
        settings = {"host": "127.0.0.1", "port": server.port, **login}
        yield Destination(type="rabbitmq", settings=settings, received=received)


@contextlib.contextmanager
def sqs(route: str) -> Iterator[Destination]:
    """Run moto and give a queue of it.

    Args:
        route: its name.
    """
    with MotoServer() as server:
        client = boto3.client(
            "sqs",
            endpoint_url=server.url,
            region_name=ACCESS["region"],
            aws_access_key_id=ACCESS["access_key_id"],
            aws_secret_access_key=ACCESS["secret_access_key"],
        )
        url = client.create_queue(QueueName=route)["QueueUrl"]

        def received() -> Iterator[str]:
            while messages := client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            ).get("Messages", []):
                for message in messages:
                    yield message["MessageAttributes"]["outbox-event-id"]["StringValue"]
                client.delete_message_batch(
                    QueueUrl=url,
                    Entries=[
                        {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]}
                        for n, message in enumerate(messages)
                    ],
                )

        try:
            settings = {"endpoint_url": server.url, **ACCESS}
            yield Destination(type="sqs", settings=settings, received=received)
        finally:
            client.close()


@contextlib.contextmanager
def http(route: str) -> Iterator[Destination]:
    """Run a web server that answers 204 to everything.

    Args:
        route: the end of its path.
    """
    del route
    with ReceiverProcess() as server:

        def received() -> Iterator[str]:
            return (event_id for event_id, _ in server.received())

        settings = {"url": server.url, "secrets": [SECRET]}
        yield Destination(type="http", settings=settings, received=received)


DESTINATIONS: Final = {"http": http, "nats": nats, "rabbitmq": rabbitmq, "redis": redis, "sqs": sqs}
