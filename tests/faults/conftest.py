"""Relays as their users run them: processes of the command line, a home on disk, a real Kafka.

What became of the events is read from the files of the log and from the broker (oracle.py):
neither the projection nor a Spark session nor code of ours stands between a test and the truth.
"""

from __future__ import annotations

import json
import os
import shutil
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
from confluent_kafka.admin import AdminClient
from tests.faults.oracle import Copy, Row, copies_in, histories_of, rows_of

from delta_outbox.demo.kafka_server import KafkaServer

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"

EVENTS = 3000
KEYS = 40
BATCH_SIZE = 500
TOPIC = "order.changed"  # also the event type: the route is empty
PARTITIONS = 4

PATIENCE = 400.0  # seconds for a command; a session starts in 10 when nothing else runs


def event_id(number: int) -> str:
    """Return the id of an event; numbers rise in the order of the log."""
    return f"event-{number:05d}"


def key_of(number: int) -> str:
    """Return the ordering key of an event."""
    return f"key-{number % KEYS}"


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


@pytest.fixture(scope="session", name="wait_for")
def _wait_for() -> Callable[..., None]:
    """Wait until a condition holds, for at most `limit` seconds."""
    return wait_for


class Topic:
    """The topic that all tests share; each begins with it empty."""

    def __init__(self, kafka: KafkaServer) -> None:
        self.bootstrap = kafka.bootstrap
        kafka.create_topic(TOPIC, PARTITIONS)
        self._consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "watermarks-only"}
        )
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def size(self) -> int:
        """Return how many messages it holds now."""
        marks = (
            self._consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=10.0)
            for number in range(PARTITIONS)
        )
        return sum(high - low for low, high in marks)

    def empty(self) -> None:
        """Delete what it holds."""
        until = [
            TopicPartition(
                TOPIC, n, self._consumer.get_watermark_offsets(TopicPartition(TOPIC, n))[1]
            )
            for n in range(PARTITIONS)
        ]
        for deleted in self._admin.delete_records(until).values():
            deleted.result(timeout=30.0)
        wait_for(lambda: self.size() == 0, limit=30.0)

    def numbers(self) -> list[int]:
        """Return the number of every message, in order within each key."""
        copies = self.copies()
        for copy in copies:
            # What was appended is what arrives, under its own identity.
            number = int(copy.value)
            assert (event_id(number), key_of(number)) == (copy.event_id, copy.key)
        return [int(copy.value) for copy in copies]

    def copies(self) -> list[Copy]:
        """Return every message that it holds now, in order within each key."""
        return copies_in(self.bootstrap, TOPIC)

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
                [sys.executable, "-c", COMMAND, *words, "--json"],
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


@pytest.fixture(scope="session")
def _topic() -> Iterator[Topic]:
    with KafkaServer() as server:
        topic = Topic(server)
        yield topic
        topic.close()


@pytest.fixture
def topic(_topic: Topic) -> Topic:
    """Return the topic, empty."""
    _topic.empty()
    return _topic


@pytest.fixture(scope="session")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, Path]:
    """Return a house with all events appended, and a copy of its home."""
    place = tmp_path_factory.mktemp("faults")
    root = place / "home"
    dropped = ("SPARK_", "PYSPARK_", "DBT_", "OUTBOX_")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) or name == "OUTBOX_CACHE"
    }
    path = [str(REPOSITORY / "python"), str(place), environment.get("PYTHONPATH", "")]
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, path)), "OUTBOX_HOME": str(root)}
    house = House(root=root, environment=environment)
    assert 0 == house.run("init")[0]
    file = place / "events.jsonl"
    with file.open("w") as stream:
        for number in range(EVENTS):
            event = {
                "event_id": event_id(number),
                "event_type": TOPIC,
                "ordering_key": key_of(number),
                "payload": number,
                "ordinal": number,
                "created_at": "2025-03-01T12:00:00Z",
            }
            stream.write(f"{json.dumps(event)}\n")
    code, report = house.run("append", str(file))
    assert (0, EVENTS) == (code, report["appended"])
    copy = place / "pristine"
    shutil.copytree(root, copy)
    return house, copy


@pytest.fixture
def house(_filled: tuple[House, Path]) -> House:
    """Return a house in which all events wait; its home is always at the same place.

    The catalog names the folders of the tables, so a copy elsewhere would write into the original.
    """
    house, copy = _filled
    shutil.rmtree(house.root)
    shutil.copytree(copy, house.root)
    return house


@pytest.fixture
def to_kafka(house: House, topic: Topic) -> House:
    """Return the house with Kafka as its destination."""
    house.settings(
        f'type = "kafka"\n"bootstrap.servers" = "{topic.bootstrap}"\ntopics = ["{TOPIC}"]'
    )
    return house


@pytest.fixture
def started(to_kafka: House, topic: Topic) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a relay and return it in the middle: the topic holds something, but not all."""
    relays: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        relay = to_kafka.start("relay", *words)
        relays.append(relay)
        wait_for(lambda: topic.size() > 0 or relay.poll() is not None)
        assert relay.poll() is None, to_kafka.errors.read_text()[-3000:]
        return relay

    yield start
    for relay in relays:
        _end(relay)


def _end(relay: subprocess.Popen[str]) -> None:
    if relay.poll() is None:
        relay.kill()
    relay.communicate()


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture(scope="session")
def is_running() -> Callable[[psutil.Process], bool]:
    """Say whether a process still runs; one that nobody has waited for does not."""
    return _runs


@pytest.fixture(scope="session")
def all_numbers() -> set[int]:
    """Return the numbers of all events."""
    return set(range(EVENTS))
