"""Kafka as the publisher kit sees it: read by a consumer of its own, disturbed for real."""

from __future__ import annotations

import os
from dataclasses import replace

from confluent_kafka import Message
from tests.publishers.proxy import Proxy

from delta_outbox.demo.kafka_reader import consume_all
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.publishers import Event
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
from delta_outbox.testing.publishers import Adapter, Arrival, delivery_id_of


class KafkaAdapter(Adapter):
    """A topic of a broker that the kit may stop and freeze.

    Args:
        server: a running broker.
        network: the proxy in front of it, through which the publisher goes.
        topic: for the events.
        small: another topic, whose broker refuses messages of 20,000 bytes.
    """

    publisher = KafkaPublisher
    answer_seconds = 30.0
    silence_seconds = 4.0
    settle_seconds = 0.5
    grace_seconds = 3.0  # reports of purged messages are waited for beyond the deadline

    def __init__(self, server: KafkaServer, network: Proxy, *, topic: str, small: str) -> None:
        self.server, self.network = server, network
        self.route, self.small = topic, small
        self.settings = {"bootstrap.servers": network.address, "topics": ["*"]}

    def received(self) -> list[Arrival]:
        return [
            _arrival(message)
            for topic in (self.route, self.small)
            for message in consume_all(self.server.bootstrap, topic)
        ]

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()

    def freeze(self) -> None:
        self.server.pause()

    def thaw(self) -> None:
        self.server.resume()

    def lose_answer(self) -> None:
        self.network.reset_replies(1)

    def has_lost_answer(self) -> bool:
        return self.network.resets > 0

    def refused(self, event: Event) -> Event:
        """Return it too large for a topic, which the broker knows and the client does not."""
        # Random, or compression would make it small enough.
        return replace(event, route=self.small, payload=event.payload + os.urandom(50_000))

    def failing(self, event: Event) -> Event:
        """Return it for a topic that somebody may still create."""
        return replace(event, route=f"{self.route}.not-yet")

    def close(self) -> None:
        self.network.heal()


def _arrival(message: Message) -> Arrival:
    headers = {name: _text(value) for name, value in dict(message.headers() or []).items()}
    return Arrival(
        delivery_id=delivery_id_of(headers),
        payload=message.value() or b"",
        headers=headers,
        key=_text(message.key()),
    )


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
