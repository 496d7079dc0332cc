"""The environment of the commands in this folder; the fixtures of a Kafka stay unused here."""

from __future__ import annotations

import os

import pytest
from tests.faults.conftest import REPOSITORY


@pytest.fixture(scope="session")
def plain_environment() -> dict[str, str]:
    """Return the environment for another process: ours, without Spark's and the outbox's words."""
    dropped = ("SPARK_", "PYSPARK_", "DBT_", "OUTBOX_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) or name == "OUTBOX_CACHE"
    }
    path = [str(REPOSITORY / "python"), kept.get("PYTHONPATH", "")]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        # The compiler that pays off after minutes would take half of the processor until then.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1",
    }
