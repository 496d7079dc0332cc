"""How long commands take beside `outbox serve`, as ratios to a bare PySpark in between."""

from __future__ import annotations

import time
from typing import Any, Final

from benchmarks.bare import BARE, Timings, bare
from benchmarks.commands import Commands, commands, insert
from benchmarks.delivered import Delivered
from benchmarks.figures import percentile, rounded

from delta_outbox.session import using_server

READY: Final = "outbox serve, until it is ready"
BUILD: Final = "dbt build, nothing new"
EVENTS: Final = 1_000  # that are delivered before
FEW: Final = 5  # events of an append to a relay that runs
APPENDS: Final = 20


def run(*, size: float, rounds: int) -> dict[str, Any]:
    """Measure, and return the document.

    Args:
        size: not used: the server is asked about few events.
        rounds: of each command, after one that is not counted.
    """
    del size
    timings = Timings()
    with commands() as home, bare() as pyspark:
        started = time.perf_counter()
        with home.serving() as url:
            timings.note(READY, time.perf_counter() - started)
            with using_server(url) as spark:
                spark.sql(insert(0, EVENTS))
            home.outbox("relay", "--drain")
            asked = {
                "outbox status": ("status",),
                "outbox list": ("list", "--limit", "20"),
                "outbox show": ("show", "event-000000000"),
            }
            home.dbt("build")
            for number in range(1 + rounds):
                found = {name: home.outbox(*words)[0] for name, words in asked.items()}
                found |= {BUILD: home.dbt("build"), BARE: pyspark.seconds()}
                for name, took in found.items() if number else ():
                    timings.note(name, took)
            latencies = few_events(home, url)
        count = EVENTS + (1 + APPENDS) * FEW
        Delivered(home.home.delivered).check(count)
        home.check_published(count)
    return {
        "what": {"events": EVENTS, "rounds": rounds, "few": FEW, "appends": APPENDS},
        **timings.as_dict(),
        "few_events": {
            "p50": percentile(latencies, 0.5),
            "p95": percentile(latencies, 0.95),
            "all": latencies,
        },
    }


def few_events(home: Commands, url: str) -> list[float]:
    """Append a few events again and again to a relay that runs.

    Args:
        home: that is served.
        url: of the server.

    Returns:
        The seconds of each append from its end until all of it is delivered.
    """
    delivered = Delivered(home.home.delivered)
    with home.running("relay", "--continuous") as relay, using_server(url) as spark:

        def append(first: int) -> float:
            time.sleep(1)
            spark.sql(insert(first, FEW))
            appended = time.perf_counter()
            home.wait(lambda: delivered.read() == first + FEW, "a few events", relay, every=0.01)
            return rounded(time.perf_counter() - appended)

        # With the first one the relay begins.
        return [append(EVENTS + number * FEW) for number in range(1 + APPENDS)][1:]
