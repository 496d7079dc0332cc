"""The limit: the raw producer of confluent-kafka with the same messages and settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from benchmarks.broker import connected_producer
from benchmarks.messages import Stream
from benchmarks.results import BenchmarkFailed
from confluent_kafka import KafkaError, Message, Producer

_ROOM_WAIT: Final = 0.01  # seconds
_REPORTS_EVERY: Final = 1000  # messages


class Reports:
    """Counts what the broker acknowledged, and keeps the first complaint."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.complaint: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take the word of the broker on one message."""
        if error is None:
            self.acknowledged += 1
        elif self.complaint is None:
            self.complaint = error


def send(
    producer: Producer,
    stream: str,
    value: bytes,
    key: bytes,
    headers: list[tuple[str, str | bytes | None]],
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> None:
    """Hand a message to the client, as soon as its queue has room.

    Args:
        producer: the client.
        stream: the topic.
        value: the payload.
        key: decides on the partition.
        headers: of the message.
        on_delivery: told what became of it.
    """
    while True:
        try:
            producer.produce(stream, value, key, -1, on_delivery, None, 0, headers)
        except BufferError:
            producer.poll(_ROOM_WAIT)
        else:
            return


def produce_all(bootstrap: str, stream: Stream) -> float:
    """Produce a stream and return the seconds until all of it was acknowledged.

    The messages lie ready in memory before.

    Args:
        bootstrap: address of the broker.
        stream: of messages; its topic exists.

    Raises:
        BenchmarkFailed: not all were acknowledged.
    """
    ready = [
        (stream.payload(n), stream.key(n).encode(), stream.wire_headers(n))
        for n in range(len(stream))
    ]
    producer, reports = connected_producer(bootstrap, stream.name), Reports()
    started = time.perf_counter()
    for place, (value, key, headers) in enumerate(ready):
        send(producer, stream.name, value, key, headers, reports)
        if not place % _REPORTS_EVERY:
            producer.poll(0)
    producer.flush()
    seconds = time.perf_counter() - started
    if reports.acknowledged != len(stream):
        raise BenchmarkFailed(
            f"raw producer: {reports.acknowledged} of {len(stream)} acknowledged: "
            f"{reports.complaint}"
        )
    return seconds
