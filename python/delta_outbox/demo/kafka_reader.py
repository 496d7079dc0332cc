"""Reading a whole topic with a plain consumer: how one checks what was really delivered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

_ANSWER_TIMEOUT: Final = 10.0  # seconds
_QUIET_TIMEOUT: Final = 30.0  # seconds without progress before the reader gives up
_AT_ONCE: Final = 1000
_LOOK: Final = 0.1  # seconds to wait for so many: the last ones are always fewer
_RETRY_WAIT: Final = 0.1  # seconds
_PASSING: Final = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


def consume_all(bootstrap: str, topic: str) -> Iterator[Message]:
    """Yield every message that a topic holds now, in order within each partition.

    Of transactions only what was committed counts.

    Args:
        bootstrap: addresses of the brokers.
        topic: its name.

    Raises:
        KafkaException: the broker refuses.
        TimeoutError: messages that the topic holds do not arrive.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "delta-outbox-reader",  # required, but nothing is committed under it
            "enable.auto.commit": False,
            # Behind the last message there may be an end of a transaction, which is not shown: only
            # with this word from the client does the position move on past it.
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }
    )
    try:
        ends = _ends(consumer, topic)
        starts = {partition: low for partition, (low, high) in ends.items() if low < high}
        consumer.assign([TopicPartition(topic, p, low) for p, low in starts.items()])
        open_ends = {partition: ends[partition][1] for partition in starts}
        last_progress = time.monotonic()
        while open_ends:
            messages = consumer.consume(_AT_ONCE, timeout=_LOOK)
            if messages:
                last_progress = time.monotonic()
            elif time.monotonic() - last_progress > _QUIET_TIMEOUT:
                raise TimeoutError(f"The rest of the topic {topic} does not arrive.")
            for message in messages:
                if (error := message.error()) is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        continue
                    raise KafkaException(error)
                partition, offset = message.partition(), message.offset()
                if offset is not None and offset < ends[partition or 0][1]:
                    yield message
            for place in consumer.position([TopicPartition(topic, p) for p in list(open_ends)]):
                if place.offset >= open_ends[place.partition]:
                    del open_ends[place.partition]
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    found = consumer.list_topics(topic, timeout=_ANSWER_TIMEOUT).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return {partition: _offsets(consumer, topic, partition) for partition in found.partitions}


def _offsets(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    deadline = time.monotonic() + _ANSWER_TIMEOUT
    place = TopicPartition(topic, partition)
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=_ANSWER_TIMEOUT)
        except KafkaException as error:
            # Just after a start a broker may be named the leader before it knows.
            if error.args[0].code() not in _PASSING or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_WAIT)
        else:
            return low, high
