"""A published engine of durable workflows for Python on PostgreSQL, DBOS: three steps each.

A step calls the third party, and its result is a row before the next one begins. Each process takes
workflows from a queue and runs several at once, in threads. What a crash interrupts goes on behind
its last step on record: a call that was under way is made again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg
from benchmarks.peers.workers import run_together
from benchmarks.processes import in_own_process
from benchmarks.results import BenchmarkFailed
from benchmarks.third_party import Call, ThirdParty, delays_between
from dbos import DBOS, DBOSClient
from psycopg.conninfo import conninfo_to_dict

STEPS: Final = ("first", "second", "third")
QUEUE: Final = "orders"
WORKFLOW: Final = "steps"
AT_ONCE: Final = 32  # workflows in a process
PROCESSES: Final = 2
_POLL: Final = 0.1  # seconds between two looks for what is new; a second by itself
_LIMIT: Final = 900.0  # seconds


def drain(conninfo: str, party: ThirdParty, count: int, *, prefix: str) -> float:
    """Run a backlog of workflows to its end; return the seconds from the first call to the last
    answer, so without what it takes to begin and to end.

    Args:
        conninfo: of the server.
        party: that is called.
        count: of the workflows.
        prefix: of their ids.

    Raises:
        BenchmarkFailed: a call is missing, or was made twice.
    """
    in_own_process(_prepare, conninfo, party.port)
    client = DBOSClient(system_database_url=_url(conninfo))
    for number in range(count):
        _enqueue(client, f"{prefix}{number}")
    client.destroy()
    run_together(_work, PROCESSES, limit=_LIMIT, conninfo=conninfo, port=party.port)
    calls = party.calls()
    _check(calls, count)
    return max(one.answered for one in calls) - min(one.came for one in calls)


def trickle(conninfo: str, party: ThirdParty, seconds: int) -> list[float]:
    """Start a workflow each second; return the seconds from an outcome to the next call.

    Args:
        conninfo: of the server.
        party: that is called.
        seconds: how long.

    Raises:
        BenchmarkFailed: a call is missing, or was made twice.
    """
    in_own_process(_trickled, conninfo, party.port, seconds)
    calls = party.calls()
    _check(calls, seconds)
    return delays_between(calls, STEPS)


def _check(calls: Sequence[Call], count: int) -> None:
    if len(calls) != len({one.key for one in calls}) or len(calls) != len(STEPS) * count:
        raise BenchmarkFailed(f"DBOS: {len(calls)} calls of {len(STEPS) * count}")


def _url(conninfo: str) -> str:
    known = conninfo_to_dict(conninfo)
    return f"postgresql+psycopg://{known['user']}@{known['host']}:{known['port']}/{known['dbname']}"


def _launch(conninfo: str, port: int, *, number: int = 0) -> None:
    """Begin to take workflows from the queue."""
    logging.getLogger("dbos").setLevel(logging.ERROR)
    party = ThirdParty(port)
    DBOS(
        config={
            "name": "benchmark",
            "system_database_url": _url(conninfo),
            "application_version": "1",
            "executor_id": f"worker-{number}",
            "max_executor_threads": AT_ONCE,
            "log_level": "ERROR",
        }
    )

    def act(key: str) -> None:
        party.act(key)

    call = DBOS.step()(act)

    def run(name: str) -> None:
        for step in STEPS:
            call(f"{step}-{name}")

    DBOS.workflow(name=WORKFLOW)(run)

    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=_POLL)


def _prepare(conninfo: str, port: int) -> None:
    """Make the tables."""
    _launch(conninfo, port)
    DBOS.destroy()


def _enqueue(client: DBOSClient, name: str) -> None:
    options: Any = {"queue_name": QUEUE, "workflow_name": WORKFLOW, "workflow_id": name}
    client.enqueue({**options, "app_version": "1"}, name)


def _work(*, number: int, ready: Callable[[], None], conninfo: str, port: int) -> None:
    """Work until no workflow is left: what a process does."""
    ready()
    _launch(conninfo, port, number=number)
    with psycopg.connect(conninfo, autocommit=True) as db:
        while _left(db):
            time.sleep(_POLL)
    DBOS.destroy()


def _left(db: psycopg.Connection[Any]) -> int:
    row = db.execute(
        "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')"
    ).fetchone()
    assert row is not None
    return int(row[0])


def _trickled(conninfo: str, port: int, seconds: int) -> None:
    _launch(conninfo, port)
    client = DBOSClient(system_database_url=_url(conninfo))
    began = time.monotonic()
    for number in range(seconds):
        time.sleep(max(0.0, began + number - time.monotonic()))
        _enqueue(client, f"trickle{number}")
    with psycopg.connect(conninfo, autocommit=True) as db:
        while _left(db):
            time.sleep(_POLL)
    client.destroy()
    DBOS.destroy()
