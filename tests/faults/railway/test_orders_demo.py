"""The demo of orders, while everything in it is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from ledger_files import read_lines
from scripts import environment
from scripts.orders_demo.children import HOST_MODULE
from scripts.orders_demo.story import LOOK_SECONDS
from tests.faults.conftest import wait_for

pytestmark = pytest.mark.rest

ROOT = Path(__file__).resolve().parents[3]
ORDERS = 8
SEED = random.Random().randrange(1_000_000)
SEEN = 4 * LOOK_SECONDS  # a process that is so old was seen by the demo
LONGEST = 1800.0  # a demo of this size, on a busy machine


class Demo:
    """A demo in a folder.

    Args:
        folder: of the demo; it need not be there.
        seed: of all that happens.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self._log = folder.with_suffix(".log")

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, or go on with it."""
        words = ["-m", "scripts.orders_demo", "--orders", str(ORDERS), "--seed", str(self.seed)]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *words, "--folder", str(self.folder)],
                cwd=ROOT,
                env=environment.plain(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def has_done(self, party: str, count: int) -> bool:
        """Say whether a third party has done so much."""
        lines = read_lines(self.folder / "ledgers" / f"{party}.jsonl")
        return sum("done" in one for one in lines) >= count

    def processes(self) -> list[psutil.Process]:
        """Return all processes that work for it."""
        found = []
        for one in psutil.process_iter():
            try:
                home = one.environ().get("OUTBOX_HOME")
                words = " ".join(one.cmdline())
            except psutil.Error:
                continue
            if home == str(self.folder / ".outbox") or str(self.folder) in words:
                found.append(one)
        return found

    def kill(self, *, having: str, older_than: float = 0.0) -> int:
        """Kill the processes whose command line has a word and that have been there so many
        seconds; return how many there were.
        """
        killed = 0
        for one in self.processes():
            try:
                is_meant = having in " ".join(one.cmdline())
                if is_meant and time.time() - one.create_time() >= older_than:
                    one.kill()
                    killed += 1
            except psutil.NoSuchProcess:
                continue
        return killed

    def said(self) -> str:
        """Return what it has printed."""
        return self._log.read_text()


@pytest.fixture
def demo(tmp_path: Path) -> Any:
    """Return a demo of which nothing is left after the test."""
    made = Demo(tmp_path / "orders", SEED)
    yield made
    made.kill(having="")


def ends(demo: Demo, running: subprocess.Popen[bytes]) -> None:
    """Wait for the demo; it must have found no broken promise, and left no process behind."""
    code = running.wait(LONGEST)
    assert 0 == code, f"seed {demo.seed}:\n{demo.said()}"
    wait_for(lambda: not demo.processes(), limit=60)


def test_no_kill_breaks_a_promise(demo: Demo) -> None:
    """A relay, hosts, the JVM, and at last all processes of a demo are killed while third parties
    are called. It goes on each time, and by the ledgers no promise is broken.
    """
    running = demo.start()

    def sees(condition: Callable[[], object]) -> None:
        """Wait for something while the demo runs."""
        wait_for(lambda: condition() or running.poll() is not None, limit=LONGEST)
        assert running.poll() is None, f"seed {demo.seed}:\n{demo.said()}"

    def reached(party: str, count: int) -> None:
        sees(lambda: demo.has_done(party, count))

    def killed(having: str) -> None:
        """After another kill it may not be there yet."""
        sees(lambda: demo.kill(having=having, older_than=SEEN))

    reached("warehouse", 2)
    killed("relay --continuous")
    reached("terminal", 1)
    killed(HOST_MODULE)
    reached("terminal", 2)
    killed("org.apache.spark")
    reached("terminal", 4)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    demo.kill(having="")
    wait_for(lambda: not demo.processes(), limit=60)
    ends(demo, demo.start())
    died = [one["died"] for one in read_lines(demo.folder / "ledgers" / "deaths.jsonl")]
    assert {"relay", "host", "demo"} <= {*died}
