"""After `kill -9` of who has started the hosts, nothing of them runs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.unit.workflow_engine.hosts.host_requests import is_gone, processes_of, wait_for
from tests.unit.workflow_engine.hosts.ledger import Ledger

from delta_outbox.workflow_engine.hosts.parent_death import HAS_DEATH_SIGNAL

ROOT = Path(__file__).resolve().parents[4]
PARENT = """
import sys
from tests.unit.workflow_engine.hosts.host_requests import made, request, setup
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool

port, file, *calls = sys.argv[1:]
hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
made(hosts, "by_thread", does="leaves_a_process", note=file)
for call in calls:
    workflow, does = call.split()
    hosts.submit(request(workflow, does=does, port=int(port)))
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "calls",
    [
        ["by_loop waits", "by_thread blocks", "alone holds_the_interpreter"],
        pytest.param(["by_thread holds_the_interpreter"], marks=pytest.mark.rest),
        pytest.param(["by_loop blocks", "alone blocks"], marks=pytest.mark.rest),
    ],
)
def test_nothing_runs_without_its_parent(
    third_party: Ledger, tmp_path: Path, calls: list[str]
) -> None:
    """Hosts die with their parent, whatever they do, and so does what they have started."""
    file, before = tmp_path / "process", len(third_party.read())
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(third_party.port), str(file), *calls],
        cwd=ROOT,
        stdin=subprocess.PIPE,
    )
    everything = [psutil.Process(parent.pid)]
    try:
        wait_for(lambda: len(third_party.read()) == before + len(calls))
        hosts = processes_of(parent.pid)
        below = [one for host in hosts for one in host.children(recursive=True)]
        assert psutil.Process(int(file.read_text())) in below
        everything += [*hosts, *below]
        assert not any(map(is_gone, everything))
        parent.kill()
        wait_for(lambda: all(map(is_gone, everything)))
    finally:
        for one in everything:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        parent.communicate()


FIRST_PROCESS = """
import contextlib, ctypes, sys
import psutil
from tests.unit.workflow_engine.hosts.host_requests import made, setup, shared_host, wait_for
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

def zombies():
    for one in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.status() == psutil.STATUS_ZOMBIE:
                return True
    return False

assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
for _ in range(2):
    host = shared_host(hosts)
    made(hosts, "by_thread", does="leaves_a_process", note=sys.argv[1])
    host.kill()
    wait_for(lambda: not host.is_running())
wait_for(lambda: hosts.room("by_thread", "by_thread") > 0 and not zombies())
hosts.close()
"""


@pytest.mark.skipif(not HAS_DEATH_SIGNAL, reason="there are no guards")
def test_the_first_process_of_a_container_has_no_zombies(tmp_path: Path) -> None:
    """What a dead host leaves behind is handed to the first process of a container, which waits for
    it: its guard, and what code of an author has started.
    """
    relay = subprocess.run(
        [sys.executable, "-c", FIRST_PROCESS, str(tmp_path / "process")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == relay.returncode, relay.stderr
