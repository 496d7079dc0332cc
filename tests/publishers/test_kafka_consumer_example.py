"""The example of a plain Kafka consumer: each delivery has its effect once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import kafka_consumer
import pytest

from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.publishers import Delivered


@pytest.fixture
def balances(tmp_path: Path) -> Callable[[], dict[str, int]]:
    """Read what the consumer has added up."""

    def read() -> dict[str, int]:
        with closing(sqlite3.connect(tmp_path / "payments.db")) as database:
            return dict(database.execute("select customer, cents from balances"))

    return read


def test_every_payment_is_added_once(
    kafka: KafkaServer, new_topic, publisher, new_event, publish, balances, tmp_path
) -> None:
    """Whether it comes twice, is read again because no offset was committed, or the transaction
    was ended in its middle: a delivery counts once, and a replay as one of its own.
    """
    topic, file = new_topic(), str(tmp_path / "payments.db")

    def deliver(*payments: tuple[str, int, str, int]) -> None:
        events = [
            new_event(
                topic,
                who,
                event_id=one,
                lifecycle=lifecycle,
                payload=json.dumps({"customer": who, "cents": cents}).encode(),
            )
            for one, lifecycle, who, cents in payments
        ]
        assert {Delivered} == {type(result) for result in publish(publisher(), events)}

    def take_in(group: str) -> None:
        given = {"bootstrap.servers": kafka.bootstrap, "group.id": group}
        kafka_consumer.run(given, topic, file, drain=True)

    deliver(("p-1", 0, "ada", 100), ("p-2", 0, "bob", 20), ("p-1", 0, "ada", 100))
    with pytest.MonkeyPatch.context() as patched:
        # The payment fails after the inbox knows it: both are undone.
        patched.setattr(kafka_consumer, "ADD", "insert into nowhere values (?, ?)")
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            take_in("one")
    assert {} == balances()
    take_in("one")
    assert {"ada": 100, "bob": 20} == balances()
    deliver(("p-2", 0, "bob", 20), ("p-3", 0, "ada", 5), ("p-1", 1, "ada", 100))
    # As a user starts it, in a group to which everything is new.
    given = (kafka.bootstrap, "another", topic, file, "drain")
    subprocess.run([sys.executable, kafka_consumer.__file__, *given], check=True, timeout=300)
    assert {"ada": 205, "bob": 20} == balances()
