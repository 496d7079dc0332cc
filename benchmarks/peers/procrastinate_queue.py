"""A published Python queue on PostgreSQL, procrastinate: an event is a job.

Its key is the lock of the job, of which procrastinate runs one at a time and in order; that costs
it much, so it is tried without as well. A worker takes jobs one by one and runs several at once;
how many is what a batch is elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import procrastinate
import psycopg
from benchmarks.broker import connected_producer
from benchmarks.messages import Stream
from benchmarks.peers.postgres import rest
from benchmarks.peers.workers import run_together
from benchmarks.raw_producer import send
from benchmarks.results import BenchmarkFailed
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from psycopg.types.json import Jsonb

QUEUE: Final = "outbox"
TASK: Final = "deliver"
MAX_ATTEMPTS: Final = 10
_LIMIT: Final = 600.0  # seconds beyond those that a worker is given


class Delivery:
    """What the task does: hand an event to Kafka and wait for the broker's word on it.

    Args:
        producer: to Kafka; a thread of this object serves its reports.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    async def __call__(
        self, event_id: str, event_type: str, key: str, headers: dict[str, str], payload: str
    ) -> None:
        """Deliver one event."""
        loop = asyncio.get_running_loop()
        acknowledged: asyncio.Future[None] = loop.create_future()

        def settle(error: KafkaError | None) -> None:
            if error is None:
                acknowledged.set_result(None)
            else:
                acknowledged.set_exception(KafkaException(error))

        def report(error: KafkaError | None, message: Message) -> None:
            del message
            loop.call_soon_threadsafe(settle, error)

        wire: list[tuple[str, str | bytes | None]] = [
            ("outbox-event-id", event_id.encode()),
            ("outbox-event-type", event_type.encode()),
            ("outbox-lifecycle", b"0"),
            *((name, value.encode()) for name, value in headers.items()),
        ]
        send(self._producer, event_type, payload.encode(), key.encode(), wire, report)
        await acknowledged

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._over.is_set():
            self._producer.poll(0.1)


def work(
    *,
    number: int,
    ready: Callable[[], None],
    conninfo: str,
    bootstrap: str,
    topic: str,
    concurrency: int,
    seconds: float,
) -> None:
    """Work until no job is left or the time is over: what a process does.

    Args:
        number: of the process.
        ready: waits for the others.
        conninfo: where the queue is.
        bootstrap: address of the broker.
        topic: where to.
        concurrency: jobs at once.
        seconds: after which it finishes what it has begun, and stops.
    """
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    delivery = Delivery(connected_producer(bootstrap, topic))
    try:
        asyncio.run(_work(conninfo, delivery, ready, number, concurrency, seconds))
    finally:
        delivery.close()


async def _work(
    conninfo: str,
    delivery: Delivery,
    ready: Callable[[], None],
    number: int,
    concurrency: int,
    seconds: float,
) -> None:
    # A connection for each job that ends, and some for the worker itself.
    connector = procrastinate.PsycopgConnector(
        conninfo=conninfo, min_size=4, max_size=min(concurrency, 20) + 4
    )
    app = procrastinate.App(connector=connector)

    async def deliver(**arguments: Any) -> None:
        await delivery(**arguments)

    retry = procrastinate.RetryStrategy(max_attempts=MAX_ATTEMPTS, exponential_wait=2)
    app.task(name=TASK, queue=QUEUE, retry=retry)(deliver)
    async with app.open_async():
        ready()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            worker = asyncio.ensure_future(
                app.run_worker_async(
                    queues=[QUEUE],
                    name=f"worker-{number}",
                    concurrency=concurrency,
                    wait=False,
                    listen_notify=False,
                    install_signal_handlers=False,
                    delete_jobs="never",
                )
            )
            await asyncio.wait({worker}, timeout=max(0.0, deadline - time.monotonic()))
            if not worker.done():
                worker.cancel()  # it finishes the jobs that it has begun
            with contextlib.suppress(asyncio.CancelledError):
                await worker
            # Without a job that it may take it stops, also where others hold all locks.
            if not await _is_any_left(connector):
                return


async def _is_any_left(connector: procrastinate.PsycopgConnector) -> bool:
    row = await connector.execute_query_one_async(
        "select exists (select 1 from procrastinate_jobs where status = 'todo') as any_left"
    )
    return bool(row["any_left"])


def load(conninfo: str, stream: Stream, *, ordered: bool) -> None:
    """Make the queue anew and fill it with a stream, as its own `defer` would.

    Args:
        conninfo: where it is to be.
        stream: of messages.
        ordered: let the key of an event be the lock of its job.
    """
    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("drop schema public cascade")
        db.execute("create schema public")
    app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=conninfo))
    with app.open():
        app.schema_manager.apply_schema()
    with psycopg.connect(conninfo) as db:
        columns = "queue_name, task_name, lock, args"
        with db.cursor().copy(f"copy procrastinate_jobs ({columns}) from stdin") as copy:
            for n in range(len(stream)):
                arguments = {
                    "event_id": stream.event_id(n),
                    "event_type": stream.name,
                    "key": stream.key(n),
                    "headers": stream.headers(n),
                    "payload": stream.payload(n).decode(),
                }
                lock = stream.key(n) if ordered else None
                copy.write_row((QUEUE, TASK, lock, Jsonb(arguments)))
    rest(conninfo, "procrastinate_jobs")


def drain(
    conninfo: str,
    bootstrap: str,
    stream: Stream,
    *,
    concurrency: int,
    processes: int,
    seconds: float,
    ordered: bool,
) -> tuple[int, float]:
    """Deliver a stream from a new queue, for a while at most; return how many, and the seconds.

    Args:
        conninfo: where the queue is to be.
        bootstrap: address of the broker.
        stream: of messages; its topic exists.
        concurrency: jobs that a process runs at once.
        processes: how many.
        seconds: at most.
        ordered: keep the order of each key.

    Raises:
        BenchmarkFailed: a job failed.
    """
    load(conninfo, stream, ordered=ordered)
    took = run_together(
        work,
        processes,
        limit=seconds + _LIMIT,
        conninfo=conninfo,
        bootstrap=bootstrap,
        topic=stream.name,
        concurrency=concurrency,
        seconds=seconds,
    )
    with psycopg.connect(conninfo) as db:
        rows = db.execute(
            "select status::text, attempts, count(*) from procrastinate_jobs group by 1, 2"
        ).fetchall()
    found = {(status, attempts): count for status, attempts, count in rows}
    delivered: int = found.pop(("succeeded", 1), 0)
    left: int = found.pop(("todo", 0), 0)
    if found or not delivered or delivered + left != len(stream):
        raise BenchmarkFailed(f"procrastinate: {rows} of {len(stream)} jobs")
    return delivered, took
