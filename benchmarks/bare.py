"""The limit of a command that needs Spark: a bare PySpark with Delta that reads one table once."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import median, ratio, rounded
from benchmarks.progress import say
from benchmarks.results import BenchmarkFailed

from delta_outbox import jars
from delta_outbox.java import find_java

BARE: Final = "a bare PySpark"
ROWS: Final = 1000
_PROGRAM: Final = """
import sys
from pyspark.sql import SparkSession
jars, table, rows, writes = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
if writes == "writes":
    spark.range(int(rows)).write.format("delta").save(table)
assert spark.read.format("delta").load(table).count() == int(rows)
spark.stop()
"""


class Bare:
    """A bare PySpark, and a table for it.

    Args:
        folder: takes the table and what Spark writes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jars = ",".join(map(str, jars.resolve()))
        self._java = find_java().home  # None: the one on the PATH, as Spark finds it
        self._run("writes")

    def seconds(self) -> float:
        """Start it, read the table, end it, and return the seconds."""
        return self._run("reads")

    def _run(self, does: str) -> float:
        started = time.perf_counter()
        done = subprocess.run(
            [
                *(sys.executable, "-c", _PROGRAM, self._jars),
                *(str(self._folder / "table"), str(ROWS), does),
            ],
            env={
                **{name: value for name, value in os.environ.items() if "SPARK" not in name},
                **({} if self._java is None else {"JAVA_HOME": str(self._java)}),
                "PYSPARK_PYTHON": sys.executable,
            },
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            raise BenchmarkFailed(f"A bare PySpark: exit {done.returncode}: {done.stderr[-500:]}")
        return seconds


class Timings:
    """The seconds of some commands, each a few times, and of a bare PySpark in between."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    def note(self, name: str, seconds: float) -> None:
        """Note how long a command took.

        Args:
            name: of the command; `BARE` for the bare PySpark.
            seconds: that it took.
        """
        self._seconds.setdefault(name, []).append(rounded(seconds))
        say(f"{name}: {seconds:.2f} s")

    def as_dict(self) -> dict[str, Any]:
        """Return all of them, their medians, and those as ratios to the bare PySpark."""
        medians = {name: median(found) for name, found in self._seconds.items()}
        ratios = {name: ratio(one, medians[BARE]) for name, one in medians.items() if name != BARE}
        return {"all": self._seconds, "seconds": medians, "ratios": ratios}


@contextlib.contextmanager
def bare() -> Iterator[Bare]:
    """Make a bare PySpark for a block."""
    with tempfile.TemporaryDirectory(prefix="delta-outbox-benchmark-") as folder:
        yield Bare(Path(folder))
