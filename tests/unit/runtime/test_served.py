"""What is written about a server, and when it is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from delta_outbox.core.errors import HomeInUse
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import (
    Served,
    find_served,
    read_served,
    remote_address,
    remove_served,
    write_served,
)

TOKEN = "a-token-of-forty-three-characters-0123456789"

# Another process that serves, without a Spark: it holds the lock and has written its file.
SERVE = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import Served, write_served
home = Home(root=Path(sys.argv[1]))
home.lock.acquire(serves=True)
write_served(home, Served(address="sc://localhost:15002", token=sys.argv[2], pid=os.getpid(),
    since=datetime(2026, 11, 1, tzinfo=UTC), home=home.root))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a new home, in a process that names no server."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return Home(root=tmp_path / "home").create()


@contextmanager
def server(home: Home) -> Iterator[subprocess.Popen[str]]:
    """Run another process that serves a home."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(home.root), TOKEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            assert "ready\n" == process.stdout.readline()
            yield process
        finally:
            process.kill()


def served(home: Home, **given: object) -> Served:
    """Return a server of a home with some of its facts replaced."""
    facts = {
        "address": "sc://localhost:15002",
        "token": TOKEN,
        "pid": os.getpid(),
        "since": datetime(2026, 11, 1, tzinfo=UTC),
        "home": home.root,
        **given,
    }
    return Served(**facts)  # type: ignore[arg-type]


def test_file_is_its_owners_alone(home: Home) -> None:
    """served.json holds address, token and process id, since when and for which home, is readable
    by its owner alone, and nothing else is left beside it.
    """
    write_served(home, served(home, pid=7))
    write_served(home, served(home))
    assert 0o600 == home.served_file.stat().st_mode & 0o777
    assert {
        "address": "sc://localhost:15002",
        "token": TOKEN,
        "pid": os.getpid(),
        "since": "2026-11-01T00:00:00+00:00",
        "home": str(home.root),
        "questions_port": None,
    } == json.loads(home.served_file.read_text())
    assert served(home) == read_served(home)
    assert [home.served_file] == [path for path in home.root.iterdir() if path.is_file()]


def test_token_is_not_shown(home: Home) -> None:
    """Whoever prints a server does not print its token; its URL needs it."""
    assert TOKEN not in repr(served(home))
    assert f"sc://localhost:15002/;token={TOKEN}" == served(home).url


def test_running_server_is_found(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that holds the lock and says where it serves is found, unless SPARK_REMOTE
    names another server.
    """
    with server(home) as process:
        found = find_served(home)
        assert served(home, pid=process.pid) == found
        assert served(home).url == remote_address(found)
        monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
        assert "sc://elsewhere" == remote_address(found)


def test_a_server_removes_its_own_file_alone(home: Home) -> None:
    """A server whose home was removed, and made anew with another server, leaves that one alone."""
    ours, other = served(home), served(home, pid=os.getpid() + 1)
    write_served(home, other)
    remove_served(home, ours)
    assert other == read_served(home)
    remove_served(home, other)
    assert not home.served_file.exists()


def test_killed_server_is_not_believed(home: Home) -> None:
    """What a killed server has left is not used, and goes away with the next lock."""
    with server(home) as process:
        process.kill()
        process.wait()
        assert home.served_file.exists()
        assert find_served(home) is None
        assert remote_address(None) is None
        with home.locked():
            assert not home.served_file.exists()


def test_file_of_another_process_than_the_holder_is_not_believed(home: Home) -> None:
    """A file is believed only if it names the process that holds the lock."""
    with server(home):
        write_served(home, served(home, pid=os.getpid()))
        assert find_served(home) is None


@pytest.mark.parametrize(
    "bent",
    [
        "",
        "{",
        "[]",
        '{"address": "sc://localhost:1"}',
        {"address": "sc://elsewhere:15002"},
        {"address": "sc://localhost:15002/;token=x"},
        {"token": ""},
        {"token": "0123456789abcdef;user_id=x"},
        {"pid": "one"},
        {"since": "yesterday"},
        {"since": None},
        {"home": None},
        {"questions_port": "one"},
    ],
)
def test_file_that_makes_no_sense_is_no_server(home: Home, bent: str | dict[str, object]) -> None:
    """A torn, foreign or bent file names no server."""
    write_served(home, served(home))
    good = json.loads(home.served_file.read_text())
    assert read_served(home) is not None
    home.served_file.write_text(bent if isinstance(bent, str) else json.dumps({**good, **bent}))
    assert read_served(home) is None


def test_own_lock_means_no_server(home: Home) -> None:
    """The process that has the home works in it by itself."""
    write_served(home, served(home))
    home.lock.acquire()
    write_served(home, served(home))
    assert find_served(home) is None
    home.lock.release()


def test_who_needs_the_home_learns_that_it_is_served(home: Home) -> None:
    """Whoever cannot share a served home learns who serves it, and that commands find it."""
    with server(home) as process:
        with pytest.raises(HomeInUse) as caught:
            home.lock.acquire()
        assert process.pid == caught.value.pid
        assert "`outbox down` ends it" in caught.value.remedy
        holder = home.lock.other_holder()
        assert holder is not None
        assert (process.pid, True) == (holder.pid, holder.serves)
    assert home.lock.other_holder() is None
