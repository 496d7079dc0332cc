"""Relays as their users run them: processes of the command line, a home on disk, a real Kafka.

What became of the events is read from the files of the log and from the destination (oracle.py):
neither the projection nor a Spark session nor code of ours stands between a test and the truth.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from scripts import environment
from tests.faults.oracle import Row, histories_of, rows_of
from tests.faults.prepared import OUTBOX, new_home

from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.spark_settings import SHORT_LIVED

REPOSITORY = Path(__file__).resolve().parents[2]

KEYS = 40
BATCH_SIZE = 500
TOPIC = "order.changed"  # also the event type: the route is empty
PARTITIONS = 4

PATIENCE = 400.0  # seconds for a command; a session starts in 10 when nothing else runs


def event_id(number: int) -> str:
    """Return the id of an event; numbers rise in the order of the log."""
    return f"event-{number:05d}"


def wait_for(
    condition: Callable[[], object], *, limit: float = PATIENCE, interval: float = 0.05
) -> None:
    """Wait until a condition holds.

    Args:
        condition: asked again and again.
        limit: seconds.
        interval: seconds between two questions.
    """
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < limit, f"still waiting after {waited:.0f} s"
        time.sleep(interval)


class Topic:
    """The topic that the tests of a run share."""

    def __init__(self, kafka: KafkaServer) -> None:
        self.server, self.bootstrap = kafka, kafka.bootstrap
        kafka.create_topic(TOPIC, PARTITIONS)
        self._consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "watermarks-only"}
        )

    def size(self) -> int:
        """Return how many messages it holds now."""
        marks = (
            self._consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=10.0)
            for number in range(PARTITIONS)
        )
        return sum(high - low for low, high in marks)

    def close(self) -> None:
        self._consumer.close()


@dataclass(frozen=True, kw_only=True)
class House:
    """A home, and the commands that work in it."""

    root: Path
    environment: Mapping[str, str]

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command and leave it running; its answers are JSON."""
        with self.errors.open("a") as errors:
            return subprocess.Popen(
                [sys.executable, "-c", OUTBOX, *words, "--json"],
                env={**self.environment, **environment},
                cwd=self.root.parent,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def end(self, process: subprocess.Popen[str]) -> tuple[int, Any]:
        """Wait for a command and return its exit code and its document."""
        output, _ = process.communicate(timeout=PATIENCE)
        assert output, self.errors.read_text()[-3000:]
        return process.returncode, json.loads(output)

    def run(self, *words: str, **environment: str) -> tuple[int, Any]:
        """Run a command and return its exit code and its document."""
        return self.end(self.start(*words, **environment))

    @property
    def errors(self) -> Path:
        """Return the file that takes what the commands say on standard error."""
        return self.root.parent / "stderr"

    def settings(self, publisher: str, *, relay: str = f"batch_size = {BATCH_SIZE}") -> None:
        """Write the settings: a small batch, and the destination.

        Args:
            publisher: lines of its table.
            relay: lines of the relay's.
        """
        text = f"[relay]\n{relay}\n\n[publishers.default]\n{publisher}\n"
        path = self.root / "outbox.toml"
        path.write_text(text)
        path.chmod(0o600)

    def histories(self) -> dict[int, list[Row]]:
        """Return the transitions of every event in order, by number; each history is legal."""
        found = histories_of(rows_of(self.log("transitions")))
        return {int(key.removeprefix("event-")): history for key, history in found.items()}

    def log(self, name: str) -> Path:
        """Return the folder of a log.

        Args:
            name: without what all have in common.
        """
        return self.root / "warehouse" / "outbox.db" / f"outbox_{name}"


@pytest.fixture(scope="session")
def plain_environment() -> dict[str, str]:
    """Return the environment for another process."""
    return {**environment.plain(), "SPARK_SUBMIT_OPTS": " ".join(SHORT_LIVED)}


@pytest.fixture(scope="session")
def made_home(
    plain_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Home]:
    """Return a function that makes a home with an outbox in which nothing has happened."""
    keep = tmp_path_factory.mktemp("prepared")
    return lambda root: new_home(root, environment=plain_environment, keep=keep)


@pytest.fixture(scope="session")
def _topic() -> Iterator[Topic]:
    with KafkaServer() as server:
        topic = Topic(server)
        yield topic
        topic.close()


def runs(process: psutil.Process) -> bool:
    """Say whether a process still runs; one that nobody has waited for does not."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
