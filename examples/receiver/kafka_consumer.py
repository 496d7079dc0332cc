"""Add up payments from Kafka, each once: the effect and its inbox row are one transaction."""

import json
import sqlite3
import sys
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

TABLES = """
create table if not exists balances (customer text primary key, cents integer not null);
create table if not exists inbox (
    event_id text, lifecycle integer, seen_at text not null default current_timestamp,
    primary key (event_id, lifecycle)
);
"""
REMEMBER = "insert into inbox (event_id, lifecycle) values (?, ?) on conflict do nothing"
ADD = """
insert into balances values (?, ?)
on conflict (customer) do update set cents = balances.cents + excluded.cents
"""


def identity(message: Message) -> tuple[str, int]:
    """Return what tells a delivery from its copies; a replay has another lifecycle."""
    headers = dict(message.headers() or [])
    event_id, lifecycle = headers["outbox-event-id"], headers["outbox-lifecycle"]
    assert isinstance(event_id, bytes)
    assert isinstance(lifecycle, bytes)
    return event_id.decode(), int(lifecycle)


def take_in(database: sqlite3.Connection, message: Message) -> None:
    """Do what a message asks for, once: all of it is committed, or nothing."""
    with database:
        if database.execute(REMEMBER, identity(message)).rowcount:
            payment = json.loads(message.value() or b"")
            database.execute(ADD, (payment["customer"], payment["cents"]))


def run(settings: dict[str, str], topic: str, file: str, *, drain: bool = False) -> None:
    """Take in a topic, for ever or until nothing is left of it."""
    consumer = Consumer(
        {
            "auto.offset.reset": "earliest",
            "enable.partition.eof": drain,
            **settings,
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    ended: set[int | None] = set()  # partitions of which nothing is left
    with closing(sqlite3.connect(file)) as database, closing(consumer):
        database.executescript(TABLES)
        while not ended or len(ended) < len(consumer.assignment()):
            messages = consumer.consume(500, timeout=1.0)
            for message in messages:
                error = message.error()
                if error is None:
                    take_in(database, message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
            if any(message.error() is None for message in messages):
                # Only now: what is not committed here comes again, and is known.
                consumer.commit(asynchronous=False)


if __name__ == "__main__":
    servers, group, topic, file, *drain = sys.argv[1:]
    run({"bootstrap.servers": servers, "group.id": group}, topic, file, drain=drain == ["drain"])
