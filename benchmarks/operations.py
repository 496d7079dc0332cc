"""What the operations of a store cost on a quiet outbox, where planning is all of it.

Usage: python -m benchmarks.operations [--rounds 8] [--long]

Prints, for the first call of each operation and for the second half of the rounds: seconds, CPU
seconds of the JVM, Spark jobs. Machines are noisy: compare two runs made right after each other,
and jobs before seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from delta_outbox.outbox import Outbox
from delta_outbox.opening import open_outbox
from delta_outbox.publishers.protocol import Delivered
from delta_outbox.relay import Mode, Relay
from delta_outbox.home import find_home

EVENTS = 20  # per round, of three keys
CLAIMED = 5  # of them, by hand; a relay delivers the rest

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a call cost.

    Args:
        seconds: by the clock.
        cpu: seconds of the JVM.
        jobs: of Spark.
    """

    seconds: float
    cpu: float
    jobs: float


class Meter:
    """Measures calls in a local session.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        children = psutil.Process().children(recursive=True)
        self._jvm = next(child for child in children if child.name() == "java")
        self._scheduler = spark.sparkContext._jsc.sc().dagScheduler()
        self.costs: dict[str, list[Cost]] = defaultdict(list)

    def __call__(self, name: str, call: Callable[[], T]) -> T:
        """Make a call, note what it cost, and return what it returned."""
        started, cpu, jobs = time.perf_counter(), self._cpu(), self._scheduler.numTotalJobs()
        result = call()
        cost = Cost(
            seconds=time.perf_counter() - started,
            cpu=self._cpu() - cpu,
            jobs=self._scheduler.numTotalJobs() - jobs,
        )
        self.costs[name].append(cost)
        return result

    def _cpu(self) -> float:
        times = self._jvm.cpu_times()
        return float(times.user + times.system)


def events(number: int) -> pa.Table:
    """Return the events of a round."""
    return pa.table(
        {
            "event_id": [f"e-{number}-{n}" for n in range(EVENTS)],
            "event_type": ["order.created"] * EVENTS,
            "payload": pa.array([b"{}"] * EVENTS, pa.binary()),
            "ordering_key": [f"key-{n % 3}" for n in range(EVENTS)],
        }
    )


def rounds(outbox: Outbox, count: int) -> dict[str, list[Cost]]:
    """Measure every operation so many times."""
    meter = Meter(outbox.spark)
    for number in range(count):
        meter("append", partial(outbox.append, events(number))).raise_if_rejected()
        claim = meter("claim", partial(outbox.claim, CLAIMED))
        assert claim is not None
        meter("end", partial(outbox.end, claim, [Delivered()] * len(claim)))
        meter("refresh", outbox.refresh)
        meter("refresh, nothing new", outbox.refresh)
        meter("relay --drain", partial(Relay(outbox).run, Mode.DRAIN))
    return meter.costs


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="What operations cost on a quiet outbox.")
    parser.add_argument("--rounds", type=int, default=8, help="8 if left out")
    parser.add_argument("--long", action="store_true", help="as a session that stays compiles")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as folder:
        home = find_home(environ={"OUTBOX_HOME": str(Path(folder) / "home")}, create=True)
        with open_outbox(home=home, create=True, short_lived=not given.long) as outbox:
            costs = rounds(outbox, given.rounds)
    print(f"{'operation':22}{'first':>8}{'later':>8}{'CPU':>8}{'jobs':>6}")
    for name, all_of_it in costs.items():
        later = all_of_it[len(all_of_it) // 2 :]
        print(
            f"{name:22}{all_of_it[0].seconds:>7.2f}s"
            f"{statistics.mean(cost.seconds for cost in later):>7.2f}s"
            f"{statistics.mean(cost.cpu for cost in later):>7.2f}s"
            f"{statistics.mean(cost.jobs for cost in later):>6.0f}"
        )


if __name__ == "__main__":
    main()
