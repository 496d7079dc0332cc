"""Hosts are started, renewed and ended, and leave nothing behind."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.unit.workflow_engine.hosts.host_requests import (
    AUTHOR,
    LIMIT,
    is_gone,
    made,
    processes_of,
    request,
    setup,
    shared_host,
    wait_for,
)
from tests.unit.workflow_engine.hosts.ledger import Ledger

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.settings import SecretMapping
from delta_outbox.lifecycle.states import Reason
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool


@pytest.mark.parametrize("does", ["leaks_threads", pytest.param("grows", marks=pytest.mark.rest)])
def test_a_worn_host_is_renewed_between_calls(does: str, tmp_path: Path) -> None:
    """A host that has leaked is replaced, and what runs in it comes to its end before."""
    hosts = HostPool(setup(growth_bytes=64 * 1024**2), limits=HostLimits(shared_hosts=1))
    try:
        [host] = processes_of()
        go_on = tmp_path / "go_on"
        waiting = hosts.submit(request("by_loop", does="waits_for", note=str(go_on)))
        assert Reason.COMPLETED == made(hosts, "by_thread", does=does).ending.reason
        wait_for(lambda: len(processes_of()) == 2)
        assert Reason.COMPLETED == made(hosts, "by_thread").ending.reason
        assert host.is_running()
        go_on.touch()
        assert Reason.COMPLETED == waiting.result(LIMIT).ending.reason
        wait_for(lambda: is_gone(host))
    finally:
        hosts.close()
    assert [] == processes_of()


def test_long_calls_in_worn_hosts_leave_room_for_others(tmp_path: Path) -> None:
    """Where every host is due to be renewed and has a long call still, calls go on in the youngest,
    and the others are renewed as soon as they can be.
    """
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1, calls=3))
    room = partial(hosts.room, "by_loop", "by_loop")
    try:
        used = list[psutil.Process]()
        for number in (1, 2):  # as many as there may be
            wait_for(lambda: room() > 0)
            assert number == len(processes_of())
            hosts.submit(request("by_loop", does="waits_for", note=str(tmp_path / str(number))))
            used += [shared_host(hosts) for _ in range(2)]
            wait_for(lambda: len(processes_of()) == 2)
        first, youngest = used[0], used[-1]
        assert [first, first, youngest, youngest] == used
        assert room() > 0
        assert youngest == shared_host(hosts)
        (tmp_path / "1").touch()
        wait_for(lambda: is_gone(first))
        wait_for(lambda: shared_host(hosts) not in (first, youngest))
    finally:
        hosts.close()


def test_hosts_that_are_gone_are_on_their_way() -> None:
    """While there is no room because hosts died, that is said, and ends with the next host."""
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
    try:
        [host] = processes_of()
        seen = [(hosts.room("by_loop", "by_loop") > 0, hosts.is_starting)]
        host.kill()
        wait_for(lambda: hosts.is_starting)
        seen.append((hosts.room("by_loop", "by_loop") > 0, True))
        wait_for(lambda: not hosts.is_starting)
        seen.append((hosts.room("by_loop", "by_loop") > 0, False))
    finally:
        hosts.close()
    assert [(True, False), (False, True), (True, False)] == seen
    assert not hosts.is_starting


@pytest.mark.rest
def test_a_host_is_renewed_after_so_many_calls() -> None:
    """No host carries out more calls than it may, and no attempt is lost over that."""
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1, calls=10))
    try:
        endings = [made(hosts, "by_loop", does="tells").ending for _ in range(25)]
        processes = [one.decided.data["process"] for one in endings if one.decided]
        assert [5, 10, 10] == sorted(Counter(processes).values())
    finally:
        hosts.close()


def test_a_host_with_other_workflows_is_not_used(tmp_path: Path) -> None:
    """Code that was changed while hosts run is not run by those that are started later, and why
    there are none is told until there are.
    """
    module = tmp_path / "renewed.py"
    text = (AUTHOR / "misbehaving.py").read_text(encoding="utf-8")
    module.write_text(text, encoding="utf-8")
    known = setup()
    renewed = Setup(modules=["renewed"], folder=tmp_path, third_parties=known.third_parties)
    hosts = HostPool(renewed, limits=HostLimits(shared_hosts=1, calls=1))
    try:
        module.write_text(text.replace('third_party = "bank"', 'third_party = "another"'))
        assert Reason.COMPLETED == made(hosts, "by_loop").ending.reason
        wait_for(lambda: hosts.room("by_loop", "by_loop") == 0)
        wait_for(lambda: hosts.problem is not None)
        assert "not those that this process was started with" in str(hosts.problem)
        assert Reason.RELEASED == made(hosts, "by_loop", deadline=1).ending.reason
        module.write_text(text, encoding="utf-8")
        wait_for(lambda: hosts.room("by_loop", "by_loop") > 0)
        wait_for(lambda: hosts.problem is None)
    finally:
        hosts.close()


def test_what_runs_is_told_when_hosts_are_closed(third_party: Ledger, tmp_path: Path) -> None:
    """Closing waits for what ends in time, cancels the rest, and leaves no process behind."""
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
    blocks = request("by_thread", does="blocks", port=third_party.port)
    submitted = hosts.submit(blocks)
    file = tmp_path / "process"
    assert (
        Reason.COMPLETED
        == made(hosts, "by_thread", does="leaves_a_process", note=str(file)).ending.reason
    )
    left = psutil.Process(int(file.read_text()))
    wait_for(lambda: blocks.task_id in third_party.read())
    hosts.close()
    assert submitted.done()
    assert Reason.UNKNOWN == submitted.result().ending.reason
    assert [] == processes_of()
    wait_for(lambda: is_gone(left))
    assert 0 == hosts.room("by_thread", "by_thread")
    assert Reason.RELEASED == made(hosts, "by_thread").ending.reason


@pytest.mark.rest
def test_what_is_submitted_beside_closing_is_told() -> None:
    """An attempt that was let in when closing begins has its report when closing is over."""
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
    with ThreadPoolExecutor(2) as threads:
        with hosts._places._lock:
            submitting = threads.submit(hosts.submit, request("by_loop"))
            wait_for(lambda: hosts._closing.locked())
            closing = threads.submit(hosts.close)
        report = submitting.result(LIMIT)
        closing.result(LIMIT)
        assert report.done()


def test_hosts_may_be_closed_by_several_at_once() -> None:
    """Whoever closes hosts waits until all have ended, also where others close them as well."""
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
    with ThreadPoolExecutor(8) as threads:
        for one in [threads.submit(hosts.close) for _ in range(8)]:
            one.result(LIMIT)
    assert hosts.is_closed
    assert [] == processes_of()


def test_a_setup_that_cannot_be_sent_is_an_error() -> None:
    """Settings that no other process can be given are told, and leave no process behind."""
    settings = {"bank": SecretMapping({"token": threading.Lock()})}
    with pytest.raises(OutboxError, match="cannot be given to a host"):
        HostPool(Setup(modules=["misbehaving"], folder=AUTHOR, third_parties=settings))
    assert [] == processes_of()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("no_such_module", "The module no_such_module cannot be imported"),
        pytest.param("without_provide", "has no function `provide`", marks=pytest.mark.rest),
        pytest.param("exits_at_import", "cannot be loaded: SystemExit (", marks=pytest.mark.rest),
        pytest.param("dies_at_import", "was killed by SIGKILL", marks=pytest.mark.rest),
    ],
)
def test_workflows_that_cannot_be_loaded_are_an_error(module: str, words: str) -> None:
    """Who opens hosts is told what is wrong with the workflows, whatever their import does."""
    with pytest.raises(OutboxError) as error:
        HostPool(Setup(modules=[module], folder=AUTHOR))
    assert words in str(error.value)
    assert [] == processes_of()
