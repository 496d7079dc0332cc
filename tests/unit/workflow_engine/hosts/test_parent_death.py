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
