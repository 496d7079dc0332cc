"""The demo as a stranger runs it, on a few days of flights."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

DAYS = 3
PATIENCE = 600.0  # seconds for one run on a busy machine


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run of the demo printed, and its exit code."""

    text: str
    exit_code: int

    def number(self, name: str) -> int:
        """Return a number of the proof."""
        return self._first(rf"^\s*{name}\s+([\d,]+)\s")

    def said(self, what: str) -> int:
        """Return the number before a word."""
        return self._first(rf"\b(\d[\d,]*(?<!,)) {what}\b")

    def _first(self, pattern: str) -> int:
        found = re.search(pattern, self.text, re.MULTILINE)
        assert found is not None, f"no {pattern} in:\n{self.text}"
        return int(found[1].replace(",", ""))


class Stranger:
    """Somebody with a folder who runs the demo in it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the demo."""
        return subprocess.Popen(
            [sys.executable, "-m", "delta_outbox.demo", "--days", str(DAYS), *arguments],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> Run:
        """Run the demo to its end."""
        process = self.start(*arguments)
        text, _ = process.communicate(timeout=PATIENCE)
        return Run(text=text, exit_code=process.returncode)


@pytest.fixture(scope="module")
def environment(repository: Path, strangers_environment: dict[str, str]) -> dict[str, str]:
    """Return an environment in which the package of this repository is found."""
    return {**strangers_environment, "PYTHONPATH": str(repository / "python")}


@pytest.fixture(scope="module")
def stranger(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """Return somebody in an empty folder."""
    return Stranger(tmp_path_factory.mktemp("stranger"), environment)


@pytest.fixture(scope="module")
def killed(stranger: Stranger) -> Path:
    """Run the demo in small batches, kill it while it delivers, and return where it delivered."""
    settings = stranger.folder / "outbox.toml"
    settings.write_text("[relay]\nbatch_size = 250\n")
    delivered = stranger.folder / ".outbox" / "delivered"
    process = stranger.start()
    deadline = time.monotonic() + PATIENCE
    while len(list(delivered.glob("*.jsonl"))) < 3 and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    settings.unlink()
    return delivered


@pytest.fixture(scope="module")
def finished(killed: Path, stranger: Stranger) -> Run:
    """Return the run after the killed one."""
    assert list(killed.glob("*.jsonl"))
    return stranger.run()


def test_a_killed_demo_ends_well_when_it_is_started_again(finished: Run) -> None:
    """After a SIGKILL in the middle of the relay, the next run delivers the rest and proves it."""
    assert finished.exit_code == 0, finished.text
    assert finished.said("appended") == 0
    expected = finished.number("expected")
    assert 0 < finished.said("published") < expected
    assert finished.number("delivered") == expected + finished.number("duplicates")
    assert (finished.number("missing"), finished.number("unexpected")) == (0, 0)
    assert (finished.number("altered"), finished.number("out of order")) == (0, 0)


def test_advised_commands_work(
    finished: Run, stranger: Stranger, environment: dict[str, str]
) -> None:
    """The id that the demo advises to look at is one that `outbox show` knows."""
    found = re.search(r"outbox show (\S+)", finished.text)
    assert found is not None
    shown = subprocess.run(
        [
            *(sys.executable, "-c", "from delta_outbox.cli.main import main; exit(main())"),
            *("show", found[1], "--json"),
        ],
        cwd=stranger.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert json.loads(shown.stdout)["event"]["event_id"] == found[1]


def test_a_false_delivery_is_found(finished: Run, killed: Path, stranger: Stranger) -> None:
    """A later run delivers nothing again, and sees a lost, a foreign and a changed line."""
    assert finished.exit_code == 0
    file = max(killed.glob("*.jsonl"), key=lambda found: found.stat().st_size)
    written = file.stat()
    lines = file.read_text().splitlines()
    lost, changed, *others = lines
    line = json.loads(changed)
    line["payload"] = line["payload"].replace('"distance_miles":', '"distance_miles":1')
    foreign = {**line, "event_id": "flight-20130101-XX1-EWR-0000-departed"}
    changed_lines = [json.dumps(line), json.dumps(foreign), *others]
    assert lost not in changed_lines
    file.write_text("".join(f"{text}\n" for text in changed_lines))
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
    run = stranger.run()
    assert run.exit_code == 1, run.text
    assert run.said("appended") == 0
    assert run.said("published") == 0
    assert run.number("missing") == 1
    assert run.number("unexpected") == 1
    assert run.number("altered") == 1


def test_kafka_demo_proves_itself(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With a real Kafka the demo delivers and proves it, and its broker ends with it."""
    stranger = Stranger(tmp_path_factory.mktemp("kafka"), environment)
    run = stranger.run("--publisher", "kafka")
    assert run.exit_code == 0, run.text
    assert run.said("published") == run.number("delivered") == run.number("expected") > 0
    address = re.search(r"127\.0\.0\.1:(\d+)", run.text)
    assert address is not None
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(address[1]))) != 0
    assert [stranger.folder / ".outbox-kafka"] == list(stranger.folder.iterdir())
