"""A relay on a PostgreSQL table: `for update skip locked`, written for speed with psycopg.

A batch is claimed by one statement and acknowledged by one statement; the acknowledgement of a
batch and the claim of the next but one share a commit, while the batch between them is on its way.
It promises less than ours: after a failure, later events of the key may overtake.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg
from benchmarks.broker import Broker, connected_producer
from benchmarks.figures import rate
from benchmarks.messages import Stream
from benchmarks.peers.postgres import rest
from benchmarks.peers.workers import run_together
from benchmarks.raw_producer import send
from benchmarks.results import BenchmarkFailed
from confluent_kafka import KafkaError, Message, Producer
from psycopg.types.json import Jsonb

MAX_ATTEMPTS: Final = 10
LEASE: Final = "30 seconds"
_SCHEMA: Final = Path(__file__).with_suffix(".sql")
_LIMIT: Final = 3600.0  # seconds for a drain

Row = tuple[int, str, str, str, dict[str, str], bytes]

_CLAIM: Final = """
with due as (
    select position
    from outbox
    where status = 'PENDING' and shard = %(shard)s
        and (available_at is null or available_at <= now())
    order by position
    limit %(limit)s
    for update skip locked
)
update outbox
set status = 'DELIVERING', attempts = attempts + 1, locked_by = %(me)s,
    locked_until = now() + %(lease)s::interval
from due
where outbox.position = due.position
returning outbox.position, event_id, event_type, ordering_key, headers, payload
"""
_DELIVERED: Final = """
update outbox
set status = 'DELIVERED', delivered_at = now(), locked_by = null, locked_until = null
where position = any(%(positions)s) and locked_by = %(me)s and status = 'DELIVERING'
"""
_FAILED: Final = """
update outbox
set status = case when attempts >= %(most)s then 'DEAD' else 'PENDING' end,
    available_at = now() + least(300, power(2, attempts - 1)) * interval '1 second',
    last_error = failed.error, locked_by = null, locked_until = null
from unnest(%(positions)s::bigint[], %(errors)s::text[]) as failed (position, error)
where outbox.position = failed.position and locked_by = %(me)s and status = 'DELIVERING'
"""
_RECLAIM: Final = """
update outbox set status = 'PENDING', locked_by = null, locked_until = null
where status = 'DELIVERING' and locked_until < now()
"""


class Batch:
    """Events on their way, and what the broker said of each.

    Args:
        rows: of the table, in the order of their positions.
    """

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.errors: dict[int, str] = {}
        self._open = len(rows)

    def send(self, producer: Producer) -> None:
        """Hand all of it to the client."""
        for position, event_id, event_type, key, headers, payload in self.rows:
            wire: list[tuple[str, str | bytes | None]] = [
                ("outbox-event-id", event_id.encode()),
                ("outbox-event-type", event_type.encode()),
                ("outbox-lifecycle", b"0"),
                *((name, value.encode()) for name, value in headers.items()),
            ]
            send(producer, event_type, payload, key.encode(), wire, self._report(position))

    def wait(self, producer: Producer) -> None:
        """Wait for the broker's word on every event; the client gives up by itself in the end."""
        while self._open:
            producer.poll(0.1)

    def _report(self, position: int) -> Callable[[KafkaError | None, Message], None]:
        def report(error: KafkaError | None, message: Message) -> None:
            del message
            self._open -= 1
            if error is not None:
                self.errors[position] = error.str()

        return report


class Relay:
    """A relay on one shard.

    Args:
        db: a connection.
        producer: to Kafka.
        shard: on which it works.
        batch_size: events.
    """

    def __init__(
        self, db: psycopg.Connection[Any], producer: Producer, *, shard: int, batch_size: int
    ) -> None:
        self._db = db
        self._producer = producer
        self._names = {"me": f"relay-{shard}", "shard": shard, "limit": batch_size, "lease": LEASE}

    def drain(self) -> None:
        """Deliver until nothing of the shard is due."""
        with self._db.transaction():
            self._db.execute(_RECLAIM)
        before, batch = None, self._next(None)
        while batch is not None:
            batch.send(self._producer)
            following = self._next(before)
            batch.wait(self._producer)
            before, batch = batch, following
            if batch is None:  # what failed may be due again
                batch, before = self._next(before), None

    def _next(self, done: Batch | None) -> Batch | None:
        """Acknowledge a batch and claim another in one transaction."""
        with self._db.transaction(), self._db.cursor(binary=True) as cursor:
            if done is not None:
                self._acknowledge(cursor, done)
            rows: list[Row] = cursor.execute(_CLAIM, self._names).fetchall()
        rows.sort(key=lambda row: row[0])
        return Batch(rows) if rows else None

    def _acknowledge(self, cursor: psycopg.Cursor[Any], batch: Batch) -> None:
        failed = batch.errors
        delivered = [row[0] for row in batch.rows if row[0] not in failed]
        cursor.execute(_DELIVERED, {**self._names, "positions": delivered})
        if failed:
            given = {"positions": list(failed), "errors": list(failed.values())}
            cursor.execute(_FAILED, {**self._names, **given, "most": MAX_ATTEMPTS})


def work(
    *,
    number: int,
    ready: Callable[[], None],
    conninfo: str,
    bootstrap: str,
    topic: str,
    batch_size: int,
) -> None:
    """Drain a shard: what a process does.

    Args:
        number: of the process, and its shard.
        ready: waits for the others.
        conninfo: where the table is.
        bootstrap: address of the broker.
        topic: where to.
        batch_size: events.
    """
    with psycopg.connect(conninfo, autocommit=True) as db:
        producer = connected_producer(bootstrap, topic)
        relay = Relay(db, producer, shard=number, batch_size=batch_size)
        ready()
        relay.drain()


def load(conninfo: str, stream: Stream, *, processes: int) -> None:
    """Make the table anew and fill it with a stream.

    Args:
        conninfo: where it is to be.
        stream: of messages.
        processes: that will work on it.
    """
    columns = "event_id, event_type, ordering_key, shard, headers, payload"
    with psycopg.connect(conninfo) as db:
        db.execute(_SCHEMA.read_bytes())
        with db.cursor().copy(f"copy outbox ({columns}) from stdin") as copy:
            for n in range(len(stream)):
                key = stream.key(n)
                headers = Jsonb(stream.headers(n))
                shard = zlib.crc32(key.encode()) % processes
                payload = stream.payload(n)
                copy.write_row((stream.event_id(n), stream.name, key, shard, headers, payload))
    rest(conninfo, "outbox")


def rate_of(
    kafka: Broker, conninfo: str, stream: Stream, *, batch_size: int, processes: int
) -> float:
    """Drain a stream to a topic of its own, check that, and return the events per second.

    Args:
        kafka: the broker.
        conninfo: of the database.
        stream: of messages.
        batch_size: events per claim.
        processes: of the relay.

    Raises:
        BenchmarkFailed: not all of it was delivered, or something else was.
    """
    with kafka.filled([stream]):
        seconds = drain(
            conninfo, kafka.bootstrap, stream, batch_size=batch_size, processes=processes
        )
    return rate(len(stream), seconds)


def drain(
    conninfo: str, bootstrap: str, stream: Stream, *, batch_size: int, processes: int
) -> float:
    """Deliver a stream from a new table and return the seconds.

    Args:
        conninfo: where the table is to be.
        bootstrap: address of the broker.
        stream: of messages; its topic exists.
        batch_size: events.
        processes: how many.

    Raises:
        BenchmarkFailed: not everything was delivered at the first attempt.
    """
    load(conninfo, stream, processes=processes)
    seconds = run_together(
        work,
        processes,
        limit=_LIMIT,
        conninfo=conninfo,
        bootstrap=bootstrap,
        topic=stream.name,
        batch_size=batch_size,
    )
    with psycopg.connect(conninfo) as db:
        rows = db.execute("select status, attempts, count(*) from outbox group by 1, 2").fetchall()
    if rows != [("DELIVERED", 1, len(stream))]:
        raise BenchmarkFailed(f"skip locked: {rows} of {len(stream)} events")
    return seconds
