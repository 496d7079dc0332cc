"""RabbitMQ as the publisher kit sees it: a queue, emptied by a client of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.publishers.rabbitmq_fixtures import Message, connect
from tests.publishers.rabbitmq_server import MAX_MESSAGE_SIZE, PASSWORD, USER, RabbitServer

from delta_outbox.publishers import Event
from delta_outbox.publishers.rabbitmq.publisher import RabbitPublisher
from delta_outbox.testing.publishers import Arrival, TcpAdapter


class RabbitAdapter(TcpAdapter):
    """A queue of a broker.

    Args:
        server: a running broker.
        queue: for the events.
    """

    publisher = RabbitPublisher

    def __init__(self, server: RabbitServer, *, queue: str) -> None:
        super().__init__(server.port)
        self.route = queue
        login = {"username": USER, "password": PASSWORD}
        self.settings = {"host": self.host, "port": self.port, **login}
        self._connection = connect(server)
        self._channel = self._connection.channel()
        self._arrived: list[Arrival] = []

    def received(self) -> list[Arrival]:
        while True:
            method, properties, body = self._channel.basic_get(self.route, auto_ack=True)
            if method is None:
                return self._arrived
            assert properties is not None
            assert body is not None
            self._arrived.append(_arrival((properties, body)))

    def refused(self, event: Event) -> Event:
        """Return it larger than the broker takes any message."""
        return replace(event, payload=event.payload + b"x" * 2 * MAX_MESSAGE_SIZE)

    def failing(self, event: Event) -> Event:
        """Return it for a queue that somebody may still declare."""
        return replace(event, route=f"{self.route}.not-yet")

    def close(self) -> None:
        self._connection.close()
        super().close()


def _arrival(message: Message) -> Arrival:
    properties, body = message
    given: dict[str, Any] = dict(properties.headers or {})
    key = given.pop("outbox-key", None)
    return Arrival(delivery_id=properties.message_id or "", payload=body, headers=given, key=key)
