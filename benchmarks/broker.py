"""Kafka for a benchmark: topics, the settings that all producers share, and the check."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
from benchmarks.messages import Stream
from benchmarks.results import BenchmarkFailed
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient

from delta_outbox.demo.kafka_reader import consume_all
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.publishers.kafka_settings import parse_settings

PARTITIONS: Final = 4
_LOG_LEVEL: Final = 3  # errors; librdkafka warns of settings that it calls experimental
_PATIENCE: Final = 60.0  # seconds


class Broker:
    """A Kafka that belongs to a benchmark.

    Args:
        server: a running one.
    """

    def __init__(self, server: KafkaServer) -> None:
        self._server = server
        self.bootstrap = server.bootstrap

    def topic(self, stream: Stream, **config: str) -> Stream:
        """Create the topic of a stream and return the stream.

        Args:
            stream: of messages.
            config: of the topic, with underscores for dots.
        """
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self._server.create_topic(stream.name, PARTITIONS, config=settings)
        return stream

    def drop(self, stream: Stream) -> None:
        """Remove the topic of a stream: its data are no longer needed."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.delete_topics([stream.name])[stream.name].result(timeout=_PATIENCE)

    @contextlib.contextmanager
    def filled(self, streams: Sequence[Stream]) -> Iterator[None]:
        """Create topics for a block that fills them; then check them, and remove them.

        Args:
            streams: of messages.

        Raises:
            BenchmarkFailed: one does not hold its messages.
        """
        for stream in streams:
            self.topic(stream)
        yield
        for stream in streams:
            self.check(stream)
            self.drop(stream)

    def check(self, stream: Stream, *, only: int | None = None, in_order: bool = True) -> None:
        """Demand that the topic of a stream holds its messages, each once, whole and in order.

        Args:
            stream: of messages.
            only: so many of them, whichever, where a contender was stopped before the end.
            in_order: whether the contender promises order per key.

        Raises:
            BenchmarkFailed: it does not.
        """
        check(consume_all(self.bootstrap, stream.name), stream, only=only, in_order=in_order)

    def instants(self, stream: Stream) -> dict[int, float]:
        """Return when the broker took each message of a topic, in seconds since 1970.

        Args:
            stream: its topic has `message.timestamp.type=LogAppendTime`.
        """
        found: dict[int, float] = {}
        for message in consume_all(self.bootstrap, stream.name):
            _, at = message.timestamp()
            found[_number(message, stream)] = at / 1000
        return found


@contextlib.contextmanager
def broker() -> Iterator[Broker]:
    """Run a broker for a block; its data go with it."""
    with KafkaServer() as server:
        yield Broker(server)


def producer_settings(bootstrap: str) -> dict[str, Any]:
    """Return the settings of every producer: those that our publisher has.

    Args:
        bootstrap: address of the broker.
    """
    ours = parse_settings({"bootstrap.servers": bootstrap, "topics": ["*"]}).client
    return {
        **ours,
        "acks": "all",
        "enable.idempotence": True,
        "enable.gapless.guarantee": True,
        "allow.auto.create.topics": False,
        "log_level": _LOG_LEVEL,
    }


def connected_producer(bootstrap: str, topic: str) -> Producer:
    """Return a producer that has found its topic, so that the search is not measured.

    Args:
        bootstrap: address of the broker.
        topic: that it will write to.
    """
    producer = Producer(producer_settings(bootstrap))
    producer.list_topics(topic, timeout=_PATIENCE)
    return producer


def check(
    messages: Iterable[Message], stream: Stream, *, only: int | None = None, in_order: bool = True
) -> None:
    """Demand that messages are those of a stream, each once, whole and in order.

    Args:
        messages: in order within each partition.
        stream: what they should be.
        only: so many of them, whichever.
        in_order: whether those of a key must be in order.

    Raises:
        BenchmarkFailed: they are not.
    """
    seen = np.zeros(len(stream), dtype=bool)
    last = np.full(stream.keys, -1, dtype=np.int64)
    places: dict[int, int | None] = {}
    for message in messages:
        number = _number(message, stream)
        if seen[number]:
            raise BenchmarkFailed(f"{stream.event_id(number)} was delivered twice.")
        seen[number] = True
        _check_content(message, stream, number)
        slot, partition = number % stream.keys, message.partition()
        if in_order and (last[slot] > number or places.setdefault(slot, partition) != partition):
            raise BenchmarkFailed(f"{stream.event_id(number)} came behind a later one of its key.")
        last[slot] = number
    wanted, found = len(stream) if only is None else only, int(seen.sum())
    if found != wanted:
        raise BenchmarkFailed(f"{stream.name}: {found} of {wanted} messages were delivered.")


def _number(message: Message, stream: Stream) -> int:
    event_id = dict(_headers(message)).get("outbox-event-id") or b""
    try:
        return stream.number(event_id.decode())
    except ValueError as error:
        raise BenchmarkFailed(f"A message of nobody in {stream.name}: {error}.") from error


def _headers(message: Message) -> Sequence[tuple[str, bytes | None]]:
    return cast("Sequence[tuple[str, bytes | None]]", message.headers() or ())


def _check_content(message: Message, stream: Stream, number: int) -> None:
    came = (message.value(), message.key(), sorted(_headers(message)))
    expected = (
        stream.payload(number),
        stream.key(number).encode(),
        sorted(stream.wire_headers(number)),
    )
    if came != expected:
        raise BenchmarkFailed(f"{stream.event_id(number)} was altered on its way.")
