"""Workflows: steps per second, how soon the next call follows, and what waits or has ended costs.

A peer, DBOS on PostgreSQL, runs the workflow of three steps over the same third party.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from benchmarks import ours
from benchmarks.costs import Cost, Meter, as_documents, rates
from benchmarks.figures import median, percentile, ratio, rounded, scaled
from benchmarks.peers import dbos_workflows
from benchmarks.peers.postgres import postgres, server_version
from benchmarks.processes import in_own_process
from benchmarks.results import BenchmarkFailed
from benchmarks.third_party import Call, ThirdParty, delays_between, third_party

from delta_outbox.api import Outbox
from delta_outbox.core.settings import SecretMapping, ThirdPartySettings, WorkflowSettings
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay
from delta_outbox.workflow_engine.opening import task_runner

AUTHOR: Final = Path(__file__).resolve().parents[1] / "workflow_author"
MODULE: Final = "measured_workflows"
STEPS: Final = ("first", "second", "third")
CATEGORIES: Final = {"keyed": 1, "locked": 1, "two_steps": 1, "opaque": 1}
"""By workflow of one task, how many tasks an instance has."""
INSTANCES: Final = 2_000
WAITING: Final = 10_000
SECONDS: Final = 60  # of the trickle, with a start per second
_PATIENCE: Final = 120.0  # seconds, after the trickle


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of instances.
        rounds: of each backlog, after one that is not counted.
    """
    count, waiting = scaled(INSTANCES, size), scaled(WAITING, size)
    seconds = scaled(SECONDS, size, at_least=20)
    with third_party() as party:
        document = in_own_process(_ours, party.port, count, waiting, seconds, rounds)
        with postgres() as conninfo:
            version = server_version(conninfo)
            peer = [
                dbos_workflows.drain(conninfo, party, count, prefix=f"peer-{n}")
                for n in range(1 + rounds)
            ][1:]
            delays = dbos_workflows.trickle(conninfo, party, seconds)
    document["peer"] = {
        "rate": median([3 * count / took for took in peer]),
        "rates": [rounded(3 * count / took) for took in peer],
        **_delays(delays),
    }
    document["ratios"]["ours to DBOS"] = ratio(document["steps"]["rate"], document["peer"]["rate"])
    return {**document, "postgresql": version}


def _ours(port: int, count: int, waiting: int, seconds: int, rounds: int) -> dict[str, Any]:
    party = ThirdParty(port)
    numbers = iter(range(10**9))
    costs: dict[str, list[Cost]] = {}

    def backlogs(name: str, kind: str, tasks: int, *, counted: int = rounds) -> None:
        for round_ in range(counted + (name not in costs)):
            cost = _drained(workers, party, kind, [next(numbers) for _ in range(count)], tasks)
            if round_ or name in costs:
                costs.setdefault(name, []).append(cost)

    with _opened(port) as workers:
        for kind, tasks in CATEGORIES.items():
            backlogs(kind, kind, tasks)
        backlogs("three steps", "steps", 3)
        delays = _trickle(workers, party, [next(numbers) for _ in range(seconds)])
        _wait_for(workers, [next(numbers) for _ in range(waiting)])
        backlogs("beside what waits", "steps", 3)
        beside = _trickle(workers, party, [next(numbers) for _ in range(seconds)])
        workers.check()
    three, with_waiting = costs["three steps"], costs["beside what waits"]
    return {
        "what": {
            "instances": count,
            "waiting": waiting,
            "seconds": seconds,
            "rounds": rounds,
        },
        "categories": {name: rates(costs[name]) for name in CATEGORIES},
        "steps": {**rates(three), **_delays(delays)},
        "beside": {**rates(with_waiting), **_delays(beside)},
        "ratios": {
            "beside what waits to without": ratio(
                median([one.rate for one in with_waiting]), median([one.rate for one in three])
            )
        },
        "costs": as_documents(costs),
    }


class _Workers:
    """An outbox with the workflows in force, in a process that runs one relay after the other.

    Args:
        outbox: of the relays.
        producer: appends the start events.
    """

    def __init__(self, outbox: Outbox, producer: Outbox) -> None:
        self.outbox, self._producer = outbox, producer

    def relay(self, mode: Mode, stop: threading.Event | None = None) -> None:
        """Run a relay with hosts of its own."""
        with task_runner(self.outbox, folder=AUTHOR) as tasks:
            Relay(self.outbox, tasks=tasks).run(mode, stop=stop)

    def start(self, kind: str, numbers: Sequence[int]) -> None:
        """Append the events that start instances of a workflow."""
        rows = pa.table(
            {
                "event_id": [f"start-{kind}-{number}" for number in numbers],
                "event_type": [f"{kind}.asked"] * len(numbers),
                "payload": [json.dumps({"number": number}).encode() for number in numbers],
            }
        )
        self._producer.append(rows).raise_if_rejected()

    def check(self) -> None:
        """Demand that every instance that waits for nobody has ended as it should."""
        self.outbox.refresh()
        rows = self.outbox.spark.sql(
            f"select event_type, count(*) as n from {self.outbox.tables.events} "
            "where startswith(event_id, 'workflow:') group by 1"
        ).collect()
        found = {row["event_type"]: row["n"] for row in rows}
        if set(found) != {"measured.done"}:
            raise BenchmarkFailed(f"Instances ended so: {found}")


@contextmanager
def _opened(port: int) -> Iterator[_Workers]:
    with ours.outbox_for("null", {}) as outbox:
        parties = {"keyed", "locked", "two_steps", "opaque", "steps"}
        table = ThirdPartySettings(settings=SecretMapping({"port": port}))
        outbox.settings = replace(
            outbox.settings,
            workflows=WorkflowSettings(modules=(MODULE,)),
            third_parties=dict.fromkeys(parties, table),
        )
        rows = joined(rows_of(one) for one in load([MODULE], AUTHOR))
        writes = NumberedWrites(outbox.spark, outbox.tables, writer="workflows", clock=outbox.clock)
        writes.append_after(None, {"version": "1", "rows": rows}, planned_by="benchmark")
        producer = Outbox(
            outbox.spark, settings=outbox.settings, statements=outbox.statements, home=outbox.home
        )
        yield _Workers(outbox, producer)
        producer.close()


def _drained(
    workers: _Workers, party: ThirdParty, kind: str, numbers: Sequence[int], tasks: int
) -> Cost:
    """Return what it costs to let instances come to their end; every call must be there once."""
    workers.start(kind, numbers)
    meter = Meter()
    workers.relay(Mode.DRAIN)
    cost = meter.cost(tasks * len(numbers))
    keys = [one.key for one in party.calls() if not one.key.startswith("hold-")]
    if len(keys) != len(set(keys)) or len(keys) != tasks * len(numbers):
        raise BenchmarkFailed(
            f"{kind}: {len(keys)} calls, {len(set(keys))} different, of {tasks * len(numbers)}."
        )
    return cost


def _wait_for(workers: _Workers, numbers: Sequence[int]) -> None:
    """Open items that nobody answers."""
    workers.start("waits", numbers)
    workers.relay(Mode.DRAIN)


def _trickle(workers: _Workers, party: ThirdParty, numbers: Sequence[int]) -> list[float]:
    """Start an instance each second beside a relay; return from outcome to next call, seconds."""
    stop = threading.Event()
    thread = threading.Thread(target=workers.relay, args=(Mode.CONTINUOUS, stop), daemon=True)
    calls: list[Call] = []
    thread.start()
    try:
        began = time.monotonic()
        for place, number in enumerate(numbers):
            time.sleep(max(0.0, began + place - time.monotonic()))
            workers.start("steps", [number])
        deadline = time.monotonic() + _PATIENCE
        while len(calls) < 3 * len(numbers):
            if time.monotonic() > deadline:
                raise BenchmarkFailed(f"{len(calls)} calls of {3 * len(numbers)}.")
            time.sleep(0.5)
            calls += party.calls()
    finally:
        stop.set()
        thread.join()
    return delays_between(calls, STEPS)


def _delays(found: Sequence[float]) -> dict[str, Any]:
    return {"next_call": {"p50": percentile(found, 0.5), "p95": percentile(found, 0.95)}}
