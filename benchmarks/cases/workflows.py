"""Workflows: steps per second, how soon the next call follows, and what waits or has ended costs.

A peer, DBOS on PostgreSQL, runs the workflow of three steps over the same third party.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from benchmarks import ours
from benchmarks.costs import Cost, Meter, as_documents, rates
from benchmarks.ended_instances import write_ended_instances
from benchmarks.figures import median, percentile, ratio, rounded, scaled
from benchmarks.peers import dbos_workflows
from benchmarks.peers.postgres import postgres, server_version
from benchmarks.processes import in_own_process
from benchmarks.progress import say
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
CATEGORIES: Final = {"keyed": 1.0, "locked": 1.0, "two_steps": 1.0, "opaque": 0.1}
"""By workflow of one task, the share of the instances that are measured: a process for each call
takes its time."""
DONE: Final = "measured.done"  # type of the event that ends an instance
INSTANCES: Final = 2_000
WAITING: Final = 10_000
ENDED: Final = 1_000_000
SECONDS: Final = 60  # of the trickle, with a start per second
_PATIENCE: Final = 120.0  # seconds, after the trickle


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: factor of the numbers of instances.
        rounds: of each backlog, after one that is not counted.
    """
    count = scaled(INSTANCES, size, at_least=200)
    seconds = scaled(SECONDS, size, at_least=20)
    counts = {
        "waiting": scaled(WAITING, size, at_least=200),
        "ended": scaled(ENDED, size, at_least=2000),
    }
    with third_party() as party:
        alone = in_own_process(_alone, party.port, count, seconds, rounds)
        beside = in_own_process(_beside, party.port, count, seconds, rounds, counts)
        with postgres() as conninfo:
            version = server_version(conninfo)
            peer = [
                dbos_workflows.drain(conninfo, party, count, prefix=f"peer-{n}")
                for n in range(1 + rounds)
            ][1:]
            delays = dbos_workflows.trickle(conninfo, party, seconds)
    costs = {**alone.costs, **beside.costs}
    steps = {
        "alone": {**rates(costs["three steps"]), **_delays(alone.delays)},
        "beside": {**rates(costs["three steps, beside"]), **_delays(beside.delays)},
        "peer": {
            "rate": median([3 * count / took for took in peer]),
            "rates": [rounded(3 * count / took) for took in peer],
            **_delays(delays),
        },
    }
    return {
        "what": {"instances": count, **counts, "seconds": seconds, "rounds": rounds},
        "postgresql": version,
        "categories": {name: rates(costs[name]) for name in CATEGORIES},
        "steps": steps,
        "ratios": {
            "beside others to alone": ratio(steps["beside"]["rate"], steps["alone"]["rate"]),
            "alone to DBOS": ratio(steps["alone"]["rate"], steps["peer"]["rate"]),
        },
        "costs": as_documents(costs),
    }


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """What one process has measured.

    Args:
        costs: of each backlog that counts, by what was done.
        delays: from an outcome to the next call, in seconds.
    """

    costs: Mapping[str, Sequence[Cost]]
    delays: Sequence[float]


def _alone(port: int, count: int, seconds: int, rounds: int) -> _Measured:
    """Measure on an outbox that holds nothing else."""
    with _opened() as workers:
        workers.put_into_force(port)
        costs = {
            name: workers.backlogs(name, max(20, round(count * share)), rounds=rounds)
            for name, share in CATEGORIES.items()
        }
        costs["three steps"] = workers.backlogs("steps", count, tasks=3, rounds=rounds)
        delays = workers.trickle(seconds)
        workers.check()
    return _Measured(costs=costs, delays=delays)


def _beside(
    port: int, count: int, seconds: int, rounds: int, counts: Mapping[str, int]
) -> _Measured:
    """Measure on an outbox that holds instances that have ended, and others that wait."""
    with _opened() as workers:
        write_ended_instances(
            workers.outbox,
            counts["ended"],
            workflow="keyed",
            task="Keyed",
            outcome="done",
            closing=DONE,
        )
        workers.put_into_force(port)
        workers.start("waits", counts["waiting"])
        workers.relay(Mode.DRAIN)
        costs = {"three steps, beside": workers.backlogs("steps", count, tasks=3, rounds=rounds)}
        delays = workers.trickle(seconds)
        workers.check()
    return _Measured(costs=costs, delays=delays)


class _Workers:
    """An outbox in a process that runs one relay after the other.

    Args:
        outbox: of the relays.
    """

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self._party: ThirdParty | None = None
        self._started = 0
        # The relay has a thread of its own while a producer appends.
        self._producer = Outbox(
            outbox.spark, settings=outbox.settings, statements=outbox.statements, home=outbox.home
        )

    def close(self) -> None:
        """End the sessions of the producer."""
        self._producer.close()

    def put_into_force(self, port: int) -> None:
        """Put the workflows into force.

        Args:
            port: of the third party.
        """
        self._party = ThirdParty(port)
        outbox = self.outbox
        table = ThirdPartySettings(settings=SecretMapping({"port": port}))
        outbox.settings = replace(
            outbox.settings,
            workflows=WorkflowSettings(modules=(MODULE,)),
            third_parties=dict.fromkeys((*CATEGORIES, "steps"), table),
        )
        rows = joined(rows_of(one) for one in load([MODULE], AUTHOR))
        writes = NumberedWrites(outbox.spark, outbox.tables, writer="workflows", clock=outbox.clock)
        writes.append_after(None, {"version": "1", "rows": rows}, planned_by="benchmark")

    def relay(self, mode: Mode, stop: threading.Event | None = None) -> None:
        """Run a relay with hosts of its own."""
        with task_runner(self.outbox, folder=AUTHOR) as tasks:
            Relay(self.outbox, tasks=tasks).run(mode, stop=stop)

    def start(self, kind: str, count: int) -> None:
        """Append events that start instances of a workflow."""
        numbers = range(self._started, self._started + count)
        self._started += count
        rows = pa.table(
            {
                "event_id": [f"start-{kind}-{number}" for number in numbers],
                "event_type": [f"{kind}.asked"] * count,
                "payload": [json.dumps({"number": number}).encode() for number in numbers],
            }
        )
        self._producer.append(rows).raise_if_rejected()

    def backlogs(self, kind: str, count: int, *, rounds: int, tasks: int = 1) -> list[Cost]:
        """Return what it costs to let instances come to their end, but for the first time.

        Args:
            kind: name of the workflow.
            count: of the instances.
            rounds: that count.
            tasks: that an instance has.
        """
        found = []
        for _ in range(1 + rounds):
            self.start(kind, count)
            meter = Meter()
            self.relay(Mode.DRAIN)
            found.append(meter.cost(tasks * count))
            self._check_calls(kind, tasks * count)
        say(f"{kind}: {median([one.rate for one in found[1:]]):g} steps/s")
        return found[1:]

    def _check_calls(self, kind: str, wanted: int) -> None:
        keys = [one.key for one in self._calls() if not one.key.startswith("hold-")]
        if len(keys) != len(set(keys)) or len(keys) != wanted:
            raise BenchmarkFailed(
                f"{kind}: {len(keys)} calls, {len(set(keys))} different, of {wanted}."
            )

    def _calls(self) -> list[Call]:
        assert self._party is not None, "no workflows are in force"
        return self._party.calls()

    def trickle(self, seconds: int) -> list[float]:
        """Start an instance each second beside a relay; return the seconds from each outcome to the
        next call.

        Args:
            seconds: how long.
        """
        stop = threading.Event()
        thread = threading.Thread(target=self.relay, args=(Mode.CONTINUOUS, stop), daemon=True)
        calls: list[Call] = []
        thread.start()
        try:
            began = time.monotonic()
            for place in range(seconds):
                time.sleep(max(0.0, began + place - time.monotonic()))
                self.start("steps", 1)
            deadline = time.monotonic() + _PATIENCE
            while len(calls) < 3 * seconds:
                if time.monotonic() > deadline:
                    raise BenchmarkFailed(f"{len(calls)} calls of {3 * seconds}.")
                time.sleep(0.5)
                calls += self._calls()
        finally:
            stop.set()
            thread.join()
        return delays_between(calls, STEPS)

    def check(self) -> None:
        """Demand that every instance that waits for nobody has ended as it should."""
        self.outbox.refresh()
        rows = self.outbox.spark.sql(
            f"select event_type, count(*) as n from {self.outbox.tables.events} "
            "where startswith(event_id, 'workflow:') group by 1"
        ).collect()
        found = {row["event_type"]: row["n"] for row in rows}
        if set(found) != {DONE}:
            raise BenchmarkFailed(f"Instances ended so: {found}")


@contextmanager
def _opened() -> Iterator[_Workers]:
    with ours.outbox_for("null", {}) as outbox:
        workers = _Workers(outbox)
        yield workers
        workers.close()


def _delays(found: Sequence[float]) -> dict[str, Any]:
    return {"next_call": {"p50": percentile(found, 0.5), "p95": percentile(found, 0.95)}}
