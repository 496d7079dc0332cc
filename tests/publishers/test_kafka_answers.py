"""Answers to To-Do items that come by topics of a real Kafka."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from tests.unit.todo.memory_items import ELSEWHERE, MemoryItems, MemoryKeys, item

from delta_outbox.core.errors import SequenceTaken
from delta_outbox.core.settings import QueueSettings, SecretMapping, TodoSettings
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.todo.item_thread import OpenOutbox
from delta_outbox.todo.queue.consumer import QueueUnreachable, Taken, consume

WAIT = 120  # seconds; the machine of a test may be busy


class Queues:
    """Consumers of one topic, its dead letters, and the items that they answer."""

    def __init__(self, kafka: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
        self.kafka, self.topic, self.pool = kafka, topic, pool
        self.items = MemoryItems(topics={"payment": topic})
        self.running: list[tuple[threading.Event, Future[Taken]]] = []

    @property
    def settings(self) -> TodoSettings:
        """Return the settings."""
        client = SecretMapping({"bootstrap.servers": self.kafka.bootstrap})
        queue = QueueSettings(client=client, group=f"group.{self.topic}", hold_seconds=3)
        return TodoSettings(answer_seconds=60, kafka=queue)

    def open(self, *orders: str) -> None:
        """Open an item for each order."""
        self.items.add(*(item(f"payment-{one}", task="payment") for one in orders))

    def start(self) -> None:
        """Start a consumer, and wait until it has partitions."""

        @contextmanager
        def opened() -> Iterator[OpenOutbox]:
            yield OpenOutbox(items=self.items, keys=MemoryKeys())

        stop, ready = threading.Event(), threading.Event()
        taken = self.pool.submit(
            lambda: consume(opened, self.settings, stop=stop, say=lambda _: ready.set())
        )
        taken.add_done_callback(lambda _: ready.set())
        self.running.append((stop, taken))
        assert ready.wait(WAIT)

    def stop(self, number: int = -1) -> Taken:
        """Stop a consumer, and return what it has taken."""
        stop, taken = self.running.pop(number)
        stop.set()
        return taken.result(WAIT)

    def send(self, *values: Any, partition: int = 0) -> None:
        """Send messages: objects of JSON, or bytes."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "acks": "all"})
        for value in values:
            raw = value if isinstance(value, bytes) else json.dumps(value).encode()
            producer.produce(
                self.topic, raw, b"key", partition=partition, headers=[("trace", b"t-1")]
            )
        assert 0 == producer.flush(WAIT)

    def committed(self) -> list[int]:
        """Return from where the group goes on, for each partition; -1001 is from nowhere."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap,
                "group.id": self.settings.kafka.group,
            }
        )
        try:
            asked = [TopicPartition(self.topic, number) for number in range(2)]
            return [one.offset for one in consumer.committed(asked, timeout=WAIT)]
        finally:
            consumer.close()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        given_up = threading.Event()
        for _ in range(10 * WAIT):
            if condition():
                return
            given_up.wait(0.1)
        raise AssertionError("it did not come true")


@pytest.fixture
def queues(kafka: KafkaServer, new_topic: Callable[..., str]) -> Iterator[Queues]:
    """Return a topic of two partitions with another one for dead letters."""
    topic = new_topic(2)
    kafka.create_topic(f"{topic}.dead", 1)
    with ThreadPoolExecutor() as pool:
        found = Queues(kafka, topic, pool)
        try:
            yield found
        finally:
            for stop, _ in found.running:
                stop.set()


def test_answers_come_by_a_topic(queues: Queues, read: Callable[[str], list[Message]]) -> None:
    """Answers count as over HTTP, poison is a dead letter with its reason, what is early is held
    and holds nobody up, and no offset is committed before what it stands for is on record.
    """
    queues.open("o1")
    queues.start()
    queues.send({"order": "early", "paid": True}, {"order": "o1", "paid": True}, b"{poison")
    queues.until(lambda: "payment-o1" in queues.items.answers and read(f"{queues.topic}.dead"))
    queues.open("early")
    queues.until(lambda: queues.committed()[0] == 3)
    queues.send({"order": "o1", "paid": True}, {"order": ELSEWHERE, "paid": True})
    queues.send({"order": "never", "paid": True})
    queues.until(lambda: queues.committed()[0] == 6)
    assert Taken(answers=4, dead_letters=2) == queues.stop()
    who = f"kafka:{queues.topic}"
    assert [("payment-o1", who), ("payment-early", who)] == queues.items.recorded
    poison, never = read(f"{queues.topic}.dead")
    assert (b"{poison", b"key") == (poison.value(), poison.key())
    headers = dict(poison.headers() or [])
    assert b"t-1" == headers["trace"]
    assert f"{queues.topic}/0/2".encode() == headers["outbox-source"]
    assert b"NOT_JSON" == headers["outbox-error"]
    assert b"UNKNOWN_ITEM" == dict(never.headers() or [])["outbox-error"]


def test_what_is_not_on_record_comes_again(queues: Queues) -> None:
    """While the outbox is in trouble nothing is committed; whoever comes next gets the message."""
    queues.open("o1")
    trouble = threading.Event()

    def fails(what: str) -> None:
        if what.startswith("complete"):
            trouble.set()
            raise SequenceTaken(writer="outbox/todo", number=1)

    queues.items.fails = fails
    queues.start()
    queues.send({"order": "o1", "paid": True})
    assert trouble.wait(WAIT)
    assert Taken() == queues.stop()
    assert {0, -1001} >= {queues.committed()[0]}
    queues.items.fails = lambda _: None
    queues.start()
    queues.until(lambda: queues.committed()[0] == 1)
    assert Taken(answers=1) == queues.stop()
    assert ["payment-o1"] == [name for name, _ in queues.items.recorded]


def test_two_consumers_share_the_partitions(queues: Queues) -> None:
    """Consumers of a group have partitions of their own, and when one goes the other takes what is
    left of it; each message is on record once.
    """
    orders = [f"s{number}" for number in range(20)]
    queues.open(*orders)
    queues.start()
    queues.send(*({"order": one, "paid": True} for one in orders[:5]))
    queues.start()
    for partition in range(2):
        queues.send(
            *({"order": one, "paid": True} for one in orders[5 + partition : 15 : 2]),
            partition=partition,
        )
    queues.until(lambda: 15 == len(queues.items.answers))
    queues.stop(0)
    queues.send(*({"order": one, "paid": True} for one in orders[15:]), partition=1)
    queues.until(lambda: 20 == len(queues.items.answers))
    queues.stop()
    assert 20 == len(queues.items.recorded)


def test_topics_must_be_there(queues: Queues, kafka: KafkaServer) -> None:
    """A consumer whose topic, or topic of dead letters, does not exist does not start."""
    queues.items.topics["payment"] = "nowhere"
    queues.start()
    with pytest.raises(QueueUnreachable, match=r"nowhere"):
        queues.stop()
