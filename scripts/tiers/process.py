"""One pytest process, and what it records while it runs (tests/conftest.py)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from scripts.tiers.suites import ROOT, Tier

LIMIT = 60 * 60  # seconds; a hung process must end before a CI does
LEAVE_LIMIT = 60.0  # seconds in which what it has started may end in order, as a soak does
LOOK_SECONDS = 0.05  # between two looks whether it has
LOGS = ROOT / "build" / "tests"
TIMED_OUT = 124
NOTHING_COLLECTED = 5  # pytest's exit code
LAST_WORDS = 4000  # characters of what a process said that ended without a failed test


@dataclass(frozen=True, kw_only=True)
class Test:
    """How a test ended.

    Args:
        name: as pytest takes it.
        outcome: passed, failed (an error counts as that) or skipped (xfail counts as that).
        seconds: how long it took, its fixtures included.
        cpu_seconds: of all processors, in all its processes.
        said: why it failed.
    """

    name: str
    outcome: str
    seconds: float
    cpu_seconds: float
    said: str


@dataclass(kw_only=True)
class Process:
    """A pytest process.

    Args:
        name: of the suite.
        files: its test files, or a share of them.
        tier: which of their tests are meant.
        options: more arguments for pytest.
        log: receives what pytest prints.
        leave_seconds: in which what it has started may end in order once it is stopped.
    """

    name: str
    files: Sequence[Path]
    tier: Tier
    options: Sequence[str]
    log: Path
    leave_seconds: float = LEAVE_LIMIT
    exit_code: int | None = field(default=None, init=False)
    _running: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)
    _told: list[psutil.Process] = field(default_factory=list, init=False)

    @property
    def record(self) -> Path:
        """Return the file of its record."""
        return self.log.with_suffix(".jsonl")

    def forget(self) -> None:
        """Remove what an earlier run has left."""
        for file in (self.log, self.record):
            file.unlink(missing_ok=True)

    def run(self) -> None:
        """Run it to its end."""
        command = [sys.executable, "-m", "pytest", f"--record={self.record}", "--tb=short"]
        command += self.options
        command += ["-m", self.tier.value] if self.tier.value else []
        command += [os.path.relpath(file, ROOT) for file in self.files]
        # A session of its own, so that a hung suite ends together with the servers it started.
        with self.log.open("wb") as log:
            self._running = subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            if self._stopped:
                self.stop()
            try:
                exit_code = self._running.wait(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                _end(self._running, signal.SIGKILL)
                self._running.wait()
                exit_code = TIMED_OUT
            _see_off(self._told, seconds=self.leave_seconds)
            self.exit_code = exit_code

    def stop(self) -> None:
        """Tell it to end, with all that it has started; `run` returns when all of that is gone."""
        self._stopped = True
        if self._running is not None and self._running.poll() is None:
            self._told += _end(self._running, signal.SIGTERM)

    def recorded(self) -> tuple[int, list[Test]]:
        """Return how many tests it has, as far as that is known, and those that have ended."""
        expected, ended = 0, []
        with contextlib.suppress(FileNotFoundError):
            for text in self.record.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(json.JSONDecodeError):  # a line that is being written
                    line = json.loads(text)
                    if "tests" in line:
                        expected = line["tests"]
                    else:
                        ended.append(Test(name=line.pop("test"), **line))
        return expected, ended

    def complaint(self) -> str | None:
        """Return what is wrong with how it ended, beside tests that failed; None if nothing is.

        A suite may hold no test of a tier: the text of its files does not tell for certain.
        """
        expected, ended = self.recorded()
        failed = sum(test.outcome == "failed" for test in ended)
        if self.exit_code == (NOTHING_COLLECTED if not expected else bool(failed)):
            missing = expected - len(ended)
            return f"{self.name}: {missing} tests did not run" if missing > 0 else None
        if self.exit_code is None:
            return f"{self.name}: did not begin"
        said = self.log.read_text(encoding="utf-8", errors="replace")[-LAST_WORDS:]
        if self.exit_code == TIMED_OUT:
            return f"{self.name}: ended after {LIMIT} s\n{said}"
        return f"{self.name}: pytest ended with {self.exit_code}\n{said}"


def _environment() -> dict[str, str]:
    """Return the environment of a pytest process.

    What is compiled is kept, also where the environment says otherwise, as in many containers: to
    rewrite and compile the tests takes seconds, and they start hundreds of processes.
    """
    found = {**os.environ, "PYTHONUNBUFFERED": "1"}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def _end(process: subprocess.Popen[bytes], by: signal.Signals) -> list[psutil.Process]:
    """Send a signal to a process and to all that it has started, in whatever session, once to each:
    a second one would end at once what is ending in order. Return what it has started.
    """
    started: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error, ProcessLookupError):
        started = psutil.Process(process.pid).children(recursive=True)
        elsewhere = [one for one in started if not _is_in_group(one, process.pid)]
        os.killpg(process.pid, by)
        for one in elsewhere:
            with contextlib.suppress(psutil.Error):
                one.send_signal(by)
    return started


def _is_in_group(process: psutil.Process, group: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(process.pid) == group
    return False


def _see_off(told: Sequence[psutil.Process], *, seconds: float) -> None:
    """Wait until processes that were told to end have ended; kill those that stay."""
    if _have_ended(told, seconds):
        return
    for one in told:
        with contextlib.suppress(psutil.Error):
            for process in (*one.children(recursive=True), one):
                process.kill()
    _have_ended(told, LEAVE_LIMIT)


def _have_ended(told: Sequence[psutil.Process], seconds: float) -> bool:
    """Wait for it, and say whether it came."""
    until = time.monotonic() + seconds
    while any(_runs(one) for one in told):
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _runs(process: psutil.Process) -> bool:
    # One that nobody waits for, for whoever started it is gone, is there for ever.
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
