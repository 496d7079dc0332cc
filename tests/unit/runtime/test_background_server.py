"""`outbox up` and `down`: the server of a home behind the terminal, without a Spark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from delta_outbox.core.errors import HomeMoved, ToldError
from delta_outbox.runtime.background_server import (
    ServerNotStarted,
    ServerStillThere,
    end_server,
    start_server,
)
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import find_served

PATIENCE = 60.0  # seconds for a Python to start on a busy machine

# Another process that takes a home, is told when to say that it serves it, and may be deaf.
HOLD = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import Served, write_served
home, does = Home(root=Path(sys.argv[1])), sys.argv[2:]
home.lock.acquire(serves="serves" in does)
if "deaf" in does:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("holds", flush=True)
sys.stdin.readline()
write_served(home, Served(address="sc://localhost:15002", token="0123456789abcdef",
    pid=os.getpid(), since=datetime.now(UTC), home=home.root))
print("serves", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a new home, on a machine without Java: what starts in it ends soon."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return Home(root=tmp_path / "home").create()


@contextmanager
def holder(home: Home, *does: str) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold a home for a block; after a line of input it says that it serves."""
    words = [sys.executable, "-c", HOLD, str(home.root), *does]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert "holds\n" == process.stdout.readline()
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str]) -> None:
    """Let a holder say that it serves, and return when it has."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert "serves\n" == process.stdout.readline()


def nothing(sentence: str) -> None:
    """Say nothing."""


def children() -> list[psutil.Process]:
    """Return what this process has started and not seen end."""
    return psutil.Process().children(recursive=True)


def test_the_error_of_the_server_is_told(home: Home) -> None:
    """Where the server cannot start, `up` ends with the server's own error and remedy, and leaves
    neither a process nor a lock.
    """
    with pytest.raises(ToldError, match="Java 17 or newer is needed") as caught:
        start_server(home, max_wait=PATIENCE, say=nothing)
    assert "NO_JAVA" == caught.value.as_dict()["code"]
    assert "Install Java 17" in caught.value.remedy
    assert [] == children()
    with home.locked():
        assert not home.served_file.exists()


def test_a_port_that_is_taken_is_named(home: Home) -> None:
    """A port on which somebody listens is refused with its number, before a Spark is started."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        with pytest.raises(ToldError, match=rf"Got: {port} ") as caught:
            start_server(home, options=["--port", port], max_wait=PATIENCE, say=nothing)
    assert "PORT_TAKEN" == caught.value.as_dict()["code"]


def test_a_home_at_work_is_not_served(home: Home) -> None:
    """Where another process works in the home, `up` names it and starts nothing."""
    with holder(home) as process:
        with pytest.raises(ToldError, match=f"in use by process {process.pid}") as caught:
            start_server(home, max_wait=PATIENCE, say=nothing)
        assert "HOME_IN_USE" == caught.value.as_dict()["code"]


def test_a_server_that_is_up_is_found(home: Home) -> None:
    """`up` in a served home starts nothing, and tells where and since when it is served."""
    with holder(home, "serves") as process:
        tell(process)
        found = start_server(home, max_wait=0.0, say=nothing)
        assert not found.is_new
        assert find_served(home) == found.served
        assert process.pid == found.served.pid


def test_a_server_that_starts_is_waited_for(home: Home) -> None:
    """`up` beside a server that is not ready yet starts none, says whom it waits for, and returns
    when that one is ready.
    """
    said: list[str] = []
    with holder(home, "serves") as process:

        def say(sentence: str) -> None:
            said.append(sentence)
            tell(process)

        found = start_server(home, max_wait=PATIENCE, say=say)
        assert (process.pid, False) == (found.served.pid, found.is_new)
        assert [f"Waiting for the server that process {process.pid} starts or ends."] == said


@pytest.mark.parametrize("interrupted", [False, True], ids=["late", "interrupted"])
def test_what_is_not_ready_is_ended(home: Home, interrupted: bool) -> None:
    """A server that `up` has started does not outlive an `up` that gives up or is interrupted."""

    def say(sentence: str) -> None:
        assert "Waiting until the server (process " in sentence
        assert str(home.logs / "serve.log") in sentence
        if interrupted:
            raise KeyboardInterrupt

    expected = KeyboardInterrupt if interrupted else ServerNotStarted
    with pytest.raises(expected) as caught:
        start_server(home, max_wait=0.0, say=say)
    assert interrupted or "was not ready after 0 s" in str(caught.value)
    assert [] == children()
    with home.locked():
        pass


def test_down_ends_what_serves(home: Home) -> None:
    """`down` returns when the server has ended and the home is free; a second one finds nothing."""
    with holder(home, "serves") as process:
        tell(process)
        ended = end_server(home, max_wait=PATIENCE, say=nothing)
        assert ended is not None
        assert process.pid == ended.pid
        assert -signal.SIGTERM == process.wait()
    assert end_server(home, max_wait=0.0, say=nothing) is None
    with home.locked():
        pass


def test_down_leaves_who_works_by_itself(home: Home) -> None:
    """`down` ends servers only: another command that has the home goes on."""
    with holder(home) as process:
        assert end_server(home, max_wait=0.0, say=nothing) is None
        assert process.poll() is None


def test_down_names_who_does_not_end(home: Home) -> None:
    """A server that does not end in time is named, with the command that kills it."""
    with holder(home, "serves", "deaf") as process:
        with pytest.raises(ServerStillThere, match=f"process {process.pid}") as caught:
            end_server(home, max_wait=0.0, say=nothing)
        assert f"kill -9 {process.pid}" in caught.value.remedy


def test_a_moved_home_is_noticed(home: Home) -> None:
    """A home that was moved under its server is not used through it; `down` at the new place ends
    that one.
    """
    with holder(home, "serves") as process:
        tell(process)
        moved = Home(root=home.root.rename(home.root.with_name("moved")))
        with pytest.raises(HomeMoved, match=f"process {process.pid}") as caught:
            start_server(moved, max_wait=0.0, say=nothing)
        assert str(home.root) in str(caught.value)
        assert "`outbox down`" in caught.value.remedy
        ended = end_server(moved, max_wait=PATIENCE, say=nothing)
        assert ended is not None
        assert process.pid == ended.pid


def test_a_killed_server_is_nobody(home: Home) -> None:
    """What a server that was killed has left is neither up nor to be ended."""
    with holder(home, "serves") as process:
        tell(process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert home.served_file.exists()
        assert end_server(home, max_wait=0.0, say=nothing) is None
        assert find_served(home) is None
