"""What a result was measured on: machine, versions, commit; no name of a host or a path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from typing import Final

import confluent_kafka
import psutil
from scripts.soak.report import commit, processor

from delta_outbox import __version__
from delta_outbox.demo.kafka_jars import KAFKA_VERSION
from delta_outbox.runtime.java import find_java

_PACKAGES: Final = ("pyspark", "delta-spark", "dbt-core", "pyarrow", "psycopg", "procrastinate")


def machine() -> dict[str, object]:
    """Return what this machine is."""
    return {
        "cores": os.cpu_count(),
        "processor": processor(),
        "memory_gib": round(psutil.virtual_memory().total / 1024**3),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(psutil.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Return the versions of what takes part.

    Raises:
        PackageNotFoundError: the extra `bench` is not installed.
    """
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {
        "delta-outbox": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "java": find_java().version,
        "kafka": KAFKA_VERSION,
        "confluent-kafka": importlib.metadata.version("confluent-kafka"),
        "librdkafka": confluent_kafka.libversion()[0],
        **packages,
    }


def sentence(found: Mapping[str, object]) -> str:
    """Return a machine in words.

    Args:
        found: as `machine` returned it.
    """
    return (
        f"{found['cores']} cores ({found['processor']}), {found['memory_gib']} GiB, "
        f"{found['system']}; load before the run {found['load_before']}"
    )
