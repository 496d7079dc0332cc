"""The environment of the processes that tests and the soak start."""

from __future__ import annotations

import os
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "python"


def plain() -> dict[str, str]:
    """Return ours without Spark's and the outbox's words; the package of this repository is found.

    The cache folder stays: the jars are fetched once.
    """
    dropped = ("SPARK_", "PYSPARK_", "DBT_", "OUTBOX_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) or name == "OUTBOX_CACHE"
    }
    path = filter(None, [str(SOURCE), kept.get("PYTHONPATH")])
    return {**kept, "PYTHONPATH": os.pathsep.join(path)}
