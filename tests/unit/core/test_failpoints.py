"""Failpoints: nothing when off; on, exactly the named process at the named time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import delta_outbox
from delta_outbox.core import failpoints
from delta_outbox.core.errors import BadSettings
from delta_outbox.core.failpoints import DRIVER_POINTS, MARK_VARIABLE, VARIABLE, WORKER_POINTS

POINTS = {*DRIVER_POINTS, *WORKER_POINTS}
SOURCES = Path(delta_outbox.__file__).parent
CRASHES = SOURCES.parents[1] / "docs" / "crashes.md"
LIMIT = 120.0  # seconds for a child, on a busy machine

THREE_TIMES = """
from delta_outbox.core.failpoints import reach
for _ in range(3):
    print("here", flush=True)
    reach("plan.after")
    reach("plan.before")
"""

# A driver, a `java` below it, a daemon below that, and a worker: each says who it is and waits.
TREE = """
import os, signal, subprocess, sys
from delta_outbox.core.failpoints import reach
name, *others = sys.argv[1:]
print(name, os.getpid(), flush=True)
if others:
    program = "JAVA" if others[0] == "java" else "PYTHON"
    subprocess.Popen([os.environ[program], "-c", os.environ["PROGRAM"], *others])
if name == "worker":
    reach("slice.answered")
if name == "driver":
    sys.stdin.readline()
    reach("plan.before")
signal.pause()
"""


def child(program: str, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start a Python that knows the package, and what we know, whatever it is called."""
    path = os.pathsep.join([str(SOURCES.parent), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONPATH": path, "PROGRAM": program, "PYTHON": sys.executable}
        | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_off_is_one_function_that_does_nothing() -> None:
    """Without the variable nothing is compared, counted or parsed."""
    assert failpoints.reach is failpoints._nothing
    assert () == failpoints._nothing.__code__.co_names


def test_driver_is_killed_at_its_time() -> None:
    """Other points and earlier times pass; then the process is gone at once."""
    process = child(THREE_TIMES, **{VARIABLE: "plan.before@2=driver"})
    output, errors = process.communicate(timeout=LIMIT)
    assert ("here\nhere\n", "") == (output, errors)
    assert -signal.SIGKILL == process.returncode


def test_frozen_process_goes_on() -> None:
    """With `:stop` the process stands still until somebody continues it, and is hit once."""
    process = child(THREE_TIMES, **{VARIABLE: "plan.before@2=driver:stop"})
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    output, _ = process.communicate(timeout=LIMIT)
    assert ("here\n" * 3, 0) == (output, process.returncode)


def test_mark_lets_one_process_act(tmp_path: Path) -> None:
    """Of all that inherit the variable one acts, and its id is in the file."""
    mark = tmp_path / "mark"
    given = {VARIABLE: "plan.before@2=driver", MARK_VARIABLE: str(mark)}
    processes = [child(THREE_TIMES, **given) for _ in range(3)]
    codes = {process.pid: process.wait(LIMIT) for process in processes}
    for process in processes:
        process.communicate()
    assert [-signal.SIGKILL, 0, 0] == sorted(codes.values())
    assert -signal.SIGKILL == codes[int(mark.read_text())]


def test_mark_that_is_taken_away_arms_again(tmp_path: Path) -> None:
    """With a mark the first to come acts from its time on, so a test can say when."""
    mark = tmp_path / "mark"
    point = failpoints.Failpoint.parse("plan.before@2=driver", mark=str(mark))
    mark.touch()
    assert [False, False, False] == [point._is_due(time) for time in (1, 2, 3)]
    mark.unlink()
    assert [False, True, False] == [point._is_due(time) for time in (1, 4, 5)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plan.before", "must be point@number=target"),
        ("plan.before@0=driver", "must be point@number=target"),
        ("plan.before@1=driver:kill", "must be point@number=target"),
        ("plan.behind@1=driver", "the point must be one of events.before, "),
        ("plan.before@1=broker", "the target must be one of driver, jvm, worker, group"),
        ("plan.before@1=worker", "a worker comes by at kafka.sending, "),
    ],
)
def test_wrong_value_is_refused(text: str, said: str) -> None:
    """What cannot be meant is an error that says what may be written."""
    with pytest.raises(BadSettings) as caught:
        failpoints.Failpoint.parse(text)
    assert said in str(caught.value)
    assert text in str(caught.value)


def test_wrong_value_ends_whoever_reads_it() -> None:
    """A variable that names no point does not go unnoticed."""
    process = child(THREE_TIMES, **{VARIABLE: "plan.behind@1=driver"})
    output, errors = process.communicate(timeout=LIMIT)
    assert (1, "") == (process.returncode, output)
    assert all(point in errors for point in POINTS)


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """Return a program of that name."""
    program = tmp_path / "java"
    program.symlink_to(Path(sys.executable).resolve())
    return program


@pytest.fixture
def started() -> Iterator[list[psutil.Process]]:
    """Return a list of processes that end with the test."""
    found: list[psutil.Process] = []
    yield found
    for process in found:
        if process.is_running():
            process.kill()


@pytest.mark.parametrize(
    ("target", "hit"),
    [
        ("worker", {"worker"}),
        ("jvm", {"java"}),
        ("driver", {"driver"}),
        ("group", {"driver", "java", "daemon", "worker"}),
    ],
)
def test_worker_finds_its_target(
    java: Path, tmp_path: Path, started: list[psutil.Process], target: str, hit: set[str]
) -> None:
    """From a worker: itself, the JVM above its daemon, the driver above that, or all of them."""
    given = {VARIABLE: f"slice.answered@1={target}:stop", MARK_VARIABLE: str(tmp_path / "mark")}
    process = child(TREE, "driver", "java", "daemon", "worker", JAVA=str(java), **given)
    members = _members(process, 4, started)
    for name in hit:
        _wait_for(members[name], psutil.STATUS_STOPPED)
    others = [member for name, member in members.items() if name not in hit]
    assert not any(member.status() == psutil.STATUS_STOPPED for member in others)
    _end(process, started)


def test_driver_finds_its_jvm(java: Path, started: list[psutil.Process]) -> None:
    """From the driver: the JVM that it has started."""
    process = child(TREE, "driver", "java", JAVA=str(java), **{VARIABLE: "plan.before@1=jvm"})
    members = _members(process, 2, started)
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    _wait_for(members["java"], psutil.STATUS_ZOMBIE)
    assert process.poll() is None
    _end(process, started)


def _members(
    process: subprocess.Popen[str], count: int, started: list[psutil.Process]
) -> dict[str, psutil.Process]:
    assert process.stdout is not None
    members = {}
    for _ in range(count):
        name, pid = process.stdout.readline().split()
        members[name] = psutil.Process(int(pid))
        started.append(members[name])
    return members


def _wait_for(process: psutil.Process, status: str) -> None:
    started = time.monotonic()
    while process.status() != status:
        assert time.monotonic() - started < LIMIT
        time.sleep(0.01)


def _end(process: subprocess.Popen[str], started: list[psutil.Process]) -> None:
    for one in started:
        one.kill()
    process.communicate()


def test_every_point_lies_in_one_place() -> None:
    """Each name stands at one call in the code, and none that nobody knows does."""
    calls = re.compile(r'(?:reach\(|committed=)"([a-z.]+)"')
    found = [
        name
        for file in SOURCES.rglob("*.py")
        for name in calls.findall(file.read_text(encoding="utf-8"))
    ]
    assert sorted(POINTS) == sorted(found)


def test_every_point_is_described() -> None:
    """What a crash leaves is written down for each point."""
    rows = re.findall(r"^\| `([a-z.]+)` \|", CRASHES.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(POINTS) == sorted(rows)
