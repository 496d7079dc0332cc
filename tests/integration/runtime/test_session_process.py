"""A session seen from outside its process: killed, refused, silent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from delta_outbox.core.errors import HomeInUse
from delta_outbox.runtime.home import Home

pytestmark = pytest.mark.local

START_LIMIT = 180.0  # seconds; a cold JVM on a busy machine
END_LIMIT = 30.0  # seconds; from the driver's death to the end of all that it started

# A driver whose workers write a line every 20 ms for ten minutes.
BUSY_DRIVER = """
import sys, time
from pathlib import Path
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.session import local_session

spark = local_session(Home(root=Path(sys.argv[1])), short_lived=True)

def publish(batches, path=sys.argv[2]):
    for batch in batches:
        for _ in range(30_000):
            with open(path, "a") as file:
                file.write("published\\n")
            time.sleep(0.02)
        yield batch

spark.range(2, numPartitions=2).mapInArrow(publish, "id long").collect()
"""

REFUSED = """
import sys
from pathlib import Path
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.session import local_session
local_session(Home(root=Path(sys.argv[1])), extra_conf={"spark.driver.memory": sys.argv[2]})
"""


def wait_for(condition: Callable[[], object], *, limit: float) -> float:
    """Wait until a condition holds and return how many seconds that took."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < limit, f"still waiting after {waited:.0f} s"
        time.sleep(0.05)
    return time.monotonic() - started


@pytest.fixture
def own_home(tmp_path: Path) -> Home:
    """Return a home that no other process of the run uses, with a space in its path."""
    return Home(root=tmp_path / "own home").create()


@pytest.mark.rest
def test_killed_driver_leaves_nobody_publishing(
    own_home: Home, tmp_path: Path, plain_environment: dict[str, str]
):
    """SIGKILL of the driver alone ends its JVM and workers within seconds; until then the home
    stays locked, and afterwards it is free.
    """
    published = tmp_path / "published"
    driver = subprocess.Popen(
        [sys.executable, "-c", BUSY_DRIVER, str(own_home.root), str(published)],
        env=plain_environment,
        cwd=tmp_path,
    )
    try:
        wait_for(lambda: published.exists() or driver.poll() is not None, limit=START_LIMIT)
        assert driver.poll() is None
        started_by_it = psutil.Process(driver.pid).children(recursive=True)
        (jvm,) = [one for one in started_by_it if one.name() == "java"]
        assert len(started_by_it) > 1, "no Python workers"
        with pytest.raises(HomeInUse) as caught:
            own_home.lock.acquire()
        assert driver.pid == caught.value.pid
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    # The JVM inherited the lock: it is had exactly when the JVM is gone.
    wait_for(lambda: _acquired(own_home, jvm.pid), limit=END_LIMIT)
    assert not _runs(jvm)
    wait_for(lambda: not any(map(_runs, started_by_it)), limit=END_LIMIT)
    own_home.lock.release()


def _acquired(home: Home, jvm_pid: int) -> bool:
    """Try once for the lock; whoever still has it must be the JVM."""
    try:
        home.lock.acquire()
    except HomeInUse as error:
        if error.pid != jvm_pid:
            raise
        return False
    return True


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.rest
@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        ("99999999999g", "Invalid maximum heap size"),  # refused by the JVM
        ("300m", "System memory"),  # refused by Spark
    ],
)
def test_start_that_fails_is_explained(
    own_home: Home, plain_environment: dict[str, str], memory: str, reason: str
):
    """When Spark does not start, the error says why and where the log is; the home is free."""
    ended = subprocess.run(
        [sys.executable, "-c", REFUSED, str(own_home.root), memory],
        env=plain_environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_LIMIT,
    )
    said = ended.stderr.splitlines()[-1]
    assert "SparkNotStarted: Spark did not start: " in said
    assert reason in said
    assert f"(log: {own_home.logs / 'jvm.log'})" in said
    with own_home.locked():
        assert own_home.lock.held


def test_second_process_is_turned_away(
    spark: object, home: Home, plain_environment: dict[str, str], tmp_path: Path
):
    """Whoever comes second gets exit code 2 and the holder's process id, never a message of the
    catalog's database (how soon: tests/unit/runtime/test_home_lock.py).
    """
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            "from delta_outbox.cli.dbt_launcher import main; exit(main())",
            "run",
        ],
        env={**plain_environment, "OUTBOX_HOME": str(home.root)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (2, "") == (ended.returncode, ended.stdout)
    code, remedy = ended.stderr.splitlines()
    assert code.startswith("HOME_IN_USE")
    assert f"process {os.getpid()}." in code
    assert f"kill {os.getpid()}" in remedy
