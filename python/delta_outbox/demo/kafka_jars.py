"""The jars of a Kafka broker, fetched by Maven coordinates through the Ivy inside pyspark."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from delta_outbox.runtime.file_lock import file_locked
from delta_outbox.runtime.jars import IVY_SETTINGS_VARIABLE, JarsUnavailable, cache_folder
from delta_outbox.runtime.java import find_java

KAFKA_VERSION: Final = "4.1.1"
_RESOLVE_TIMEOUT: Final = 900.0  # seconds
_MODULES: Final = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    # Without a binding the broker says nothing at all, not even why it cannot start.
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)


def kafka_jars() -> Path:
    """Return the folder with the broker's jars, fetching them the first time (about a minute).

    Two processes that resolve into one Ivy folder corrupt each other's jars, hence the lock;
    the folder appears whole or not at all.

    Raises:
        NoJava: there is no Java to run Ivy with.
        JarsUnavailable: the jars cannot be fetched.
    """
    cache = cache_folder()
    folder = cache / f"kafka-{KAFKA_VERSION}"
    if folder.is_dir():
        return folder
    java = str(find_java().executable)
    with file_locked(cache / "kafka.lock"):
        if folder.is_dir():  # the one before us fetched them
            return folder
        with tempfile.TemporaryDirectory(dir=cache, prefix="kafka-jars-") as scratch:
            _resolve(java, Path(scratch), ivy_folder=cache / "kafka-ivy")
            (Path(scratch) / "jars").rename(folder)
    return folder


def _resolve(java: str, scratch: Path, *, ivy_folder: Path) -> None:
    dependencies = "".join(
        f'<dependency org="{organisation}" name="{name}" rev="{revision}" '
        'conf="default->runtime,master"/>'
        for organisation, name, revision in _MODULES
    )
    module = scratch / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="delta-outbox" module="local-kafka"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    # Proxies and mirrors are named once, for Spark's resolver and for this one.
    command = [java, *shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))]
    command += ["-jar", str(_ivy_jar()), "-ivy", str(module), "-cache", str(ivy_folder)]
    if settings := os.environ.get(IVY_SETTINGS_VARIABLE, "").strip():
        command += ["-settings", str(Path(settings).expanduser())]
    command += ["-types", "jar", "bundle", "-retrieve"]
    command += [f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_RESOLVE_TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise JarsUnavailable("The jars of Kafka did not arrive within 15 minutes.") from error
    # Ivy's command line ends with 0 although a dependency is missing: look for the broker too.
    if done.returncode != 0 or not list((scratch / "jars").glob("kafka_2.13-*.jar")):
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        message = [line for line in lines if "UNRESOLVED" in line or "FAILED" in line] or lines[-3:]
        raise JarsUnavailable(f"The jars of Kafka could not be fetched: {'; '.join(message[:5])}")


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec is not None else None
    jars = [jar for place in places or () for jar in Path(place).glob("jars/ivy-*.jar")]
    if not jars:
        raise JarsUnavailable(
            "pyspark with its jars is needed to fetch Kafka.",
            remedy="Install pyspark (not only its Connect client): pip install pyspark.",
        )
    return jars[0]
