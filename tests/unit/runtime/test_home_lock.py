"""One process at a time in a home; who has it is said, by its process id."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from delta_outbox.core.errors import HomeInUse, NoLocks, OutboxError
from delta_outbox.runtime import home_lock
from delta_outbox.runtime.file_lock import file_locked
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.home_lock import is_alive
from delta_outbox.store.presence import Presence

ANSWER_LIMIT = 5.0  # seconds; the contract's

HOLD = """
import subprocess, sys
from pathlib import Path
from delta_outbox.runtime.home import Home
lock = Home(root=Path(sys.argv[1])).lock
lock.acquire()
if sys.argv[2:]:  # a child that inherits the lock, as the JVM does
    child = subprocess.Popen(["sleep", "600"], pass_fds=(lock.descriptor,))
    lock.shared_with(child.pid)
    print(child.pid, flush=True)
else:
    print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a new home."""
    return Home(root=tmp_path / "home").create()


@contextmanager
def holder(home: Home, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run another process that holds the lock, and return what it said when it had it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.root), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


class Clock:
    """A time that passes while somebody sleeps, and only then: how long is waited is exact."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@contextmanager
def waiting(clock: Clock) -> Iterator[None]:
    """Let who waits for a home in a block wait by a clock, and no longer than a user may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home_lock, "time", clock)
        yield
    assert 0 < clock.seconds < ANSWER_LIMIT


def wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the JVM of a driver that is gone be waited for as long as a busy machine needs."""
    monkeypatch.setattr(home_lock, "GONE_DRIVER_PATIENCE", 60.0)


def test_second_process_learns_the_first_ones_id(home: Home):
    """Who comes second is told within 5 s which process has the home and what to do."""
    with holder(home) as (process, _):
        with waiting(Clock()), pytest.raises(HomeInUse) as caught:
            home.lock.acquire()
        assert process.pid == caught.value.pid
        assert f"process {process.pid}" in str(caught.value)
        assert f"kill {process.pid}" in caught.value.remedy
        assert "run `outbox up` first" in caught.value.remedy
        assert 2 == caught.value.exit_code
        assert not home.lock.held


def test_lock_is_free_when_its_holder_is_killed(home: Home):
    """A killed holder leaves nothing behind: the next one simply gets the home."""
    with holder(home) as (process, _):
        process.kill()
        process.wait()
        with home.locked():
            assert home.lock.holder() is not None
            assert os.getpid() == home.lock.holder().pid  # type: ignore[union-attr]


def test_lock_lasts_as_long_as_the_child_that_inherited_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    """A driver that was killed does not free the home while its JVM still runs; who comes second is
    told so within 5 s.
    """
    with holder(home, "with-child") as (process, child):
        try:
            process.kill()
            process.wait()
            with waiting(Clock()), pytest.raises(HomeInUse) as caught:
                home.lock.acquire()
            assert int(child) == caught.value.pid
            assert f"process {process.pid}, which was killed" in caught.value.remedy
        finally:
            os.kill(int(child), 9)
        wait_long(monkeypatch)
        with home.locked():  # waits for the moment that the child needs to end
            assert home.lock.held


def test_lock_waits_for_a_child_that_is_ending(home: Home, monkeypatch: pytest.MonkeyPatch):
    """A JVM that ends a moment after its driver does not turn the next command away."""
    wait_long(monkeypatch)
    with holder(home, "with-child") as (process, child):
        process.kill()
        process.wait()
        ending = subprocess.Popen(["sh", "-c", f"sleep 1; kill -9 {child}"])
        with home.locked():
            assert home.lock.held
        ending.wait()


def test_same_process_takes_it_once(home: Home):
    """Within a process the lock is one: taking it again is free, and releasing it frees it."""
    home.lock.acquire()
    Home(root=home.root).lock.acquire()
    home.lock.release()
    assert not home.lock.held
    with holder(home) as (_, said):
        assert "held" == said


@pytest.mark.parametrize("number", ["ENOLCK", "EOPNOTSUPP", "ENOSYS"])
def test_a_file_system_without_locks_is_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
):
    """Where the file system takes no locks, as NFS without its lock service, whoever needs one is
    told so, with what to do, and holds nothing; what is there keeps as it is.
    """
    home.lock.acquire()
    home.lock.release()
    before = home.lock_file.read_bytes()

    def refused(*_: Any) -> None:
        raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)))

    monkeypatch.setattr(fcntl, "flock", refused)
    ways = (
        home.lock.acquire,
        home.lock.other_holder,
        lambda: Presence(home.relays).enter("relay-1"),
        lambda: file_locked(tmp_path / "cache" / "lock").__enter__(),
    )
    for way in ways:
        with pytest.raises(NoLocks, match="takes no lock: ") as caught:
            way()
        assert isinstance(caught.value, OutboxError)
        assert "on a disk of this machine" in caught.value.remedy
    assert not home.lock.held
    assert before == home.lock_file.read_bytes()
    monkeypatch.undo()
    with home.locked():
        assert home.lock.held


def test_who_has_ended_is_not_alive() -> None:
    """A process that has ended, and that its parent has not asked for, counts as gone."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_alive(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process.pid)
    assert not is_alive(process.pid)
