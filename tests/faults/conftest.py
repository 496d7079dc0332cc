"""Relays as their users run them: processes of the command line, a home on disk, a real Kafka.

What became of the events is read from the files of the log and from the broker, by nothing of
ours that decides: neither the projection nor a Spark session stands between a test and the truth.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from delta_outbox.demo.kafka_reader import consume_all
from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.lifecycle import LEGAL_TRANSITIONS, State

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"

EVENTS = 3000
KEYS = 40
BATCH_SIZE = 500
TOPIC = "order.changed"  # also the event type: the route is empty
PARTITIONS = 4

PATIENCE = 400.0  # seconds for a command; a session starts in 10 when nothing else runs

Row = Mapping[str, Any]


def event_id(number: int) -> str:
    """Return the id of an event; numbers rise in the order of the log."""
    return f"event-{number:05d}"


def key_of(number: int) -> str:
    """Return the ordering key of an event."""
    return f"key-{number % KEYS}"


def wait_for(condition: Callable[[], object], *, limit: float = PATIENCE) -> None:
    """Wait until a condition holds.

    Args:
        condition: asked every 50 ms.
        limit: seconds.
    """
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < limit, f"still waiting after {waited:.0f} s"
        time.sleep(0.05)


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
        return [int(_text(message.value())) for message in self._messages()]

    def _messages(self) -> list[Message]:
        messages = list(consume_all(self.bootstrap, TOPIC))
        for message in messages:
            number = int(_text(message.value()))
            headers = dict(message.headers() or [])
            # What was appended is what arrives, under its own identity.
            assert event_id(number).encode() == headers["outbox-event-id"]
            assert key_of(number) == _text(message.key())
        return messages

    def close(self) -> None:
        self._consumer.close()


def _text(value: str | bytes | None) -> str:
    assert value is not None
    return value if isinstance(value, str) else value.decode()


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

    def settings(self, publisher: str) -> None:
        """Write the settings: a small batch, and the destination.

        Args:
            publisher: lines of its table.
        """
        text = f"[relay]\nbatch_size = {BATCH_SIZE}\n\n[publishers.default]\n{publisher}\n"
        path = self.root / "outbox.toml"
        path.write_text(text)
        path.chmod(0o600)

    def histories(self) -> dict[int, list[Row]]:
        """Return the transitions of every event in order, by number; each history is legal.

        The files that the commits of Delta name are read as they are.
        """
        log = self.root / "warehouse" / "outbox.db" / "outbox_transitions"
        found: dict[int, list[Row]] = defaultdict(list)
        for commit in sorted((log / "_delta_log").glob("*.json")):
            for action in map(json.loads, commit.read_text().splitlines()):
                assert "remove" not in action, "a log is append-only"
                if "add" in action:
                    file = pq.ParquetFile(log / action["add"]["path"])
                    for row in file.read().to_pylist():
                        found[int(row["event_id"].removeprefix("event-"))].append(row)
        for history in found.values():
            history.sort(key=lambda row: (row["sequence"], row["from_state"] == "PENDING"))
            _check(history)
        return dict(found)


def _check(history: Sequence[Row]) -> None:
    """Check that a history begins waiting, leaves no gap, and ends each claim that it begins."""
    state = State.PENDING
    claim = None
    for row in history:
        step = (State(row["from_state"]), State(row["to_state"]))
        assert step in LEGAL_TRANSITIONS, history
        assert state is step[0], history
        if step[0] is State.CLAIMED:
            assert claim == row["claim_id"], history
        state, claim = step[1], row["claim_id"]


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
