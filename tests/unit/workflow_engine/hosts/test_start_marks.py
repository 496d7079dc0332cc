"""Of each call it is known whether it was begun, whenever its host is killed."""

from __future__ import annotations

import random
import time
from functools import partial

import pytest
from tests.unit.workflow_engine.hosts.host_requests import (
    LIMIT,
    calls_of,
    made,
    processes_of,
    request,
    setup,
    shared_host,
    wait_for,
)
from tests.unit.workflow_engine.hosts.ledger import Ledger

from delta_outbox.lifecycle.states import Reason
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool

NOT_BEGUN = {Reason.RELEASED, Reason.FAILED}
MAY_HAVE_ACTED = {Reason.UNKNOWN, Reason.UNCERTAIN}


def test_what_never_began_was_not_sent(hosts: HostPool, third_party: Ledger) -> None:
    """Calls that a host had, and had not begun when it was killed, count as no attempts."""
    host = shared_host(hosts)
    host.suspend()
    requests = [request("by_loop", port=third_party.port) for _ in range(20)]
    submitted = [hosts.submit(one) for one in requests]
    wait_for(lambda: calls_of(hosts) == len(requests))
    host.kill()
    assert {Reason.RELEASED} == {one.result(LIMIT).ending.reason for one in submitted}
    assert not {one.task_id for one in requests} & set(third_party.read())


@pytest.mark.parametrize(
    ("does", "reason"),
    [("leaves_a_stray", Reason.RELEASED), ("leaves_a_stray_with_pipes", Reason.UNKNOWN)],
)
def test_a_stray_process_does_not_hide_a_death(does: str, reason: Reason) -> None:
    """A host's death is noticed at once, also while what an author has started lives on."""
    hosts = HostPool(setup(), limits=HostLimits(shared_hosts=1))
    try:
        host = shared_host(hosts)
        assert Reason.COMPLETED == made(hosts, "by_thread", does=does).ending.reason
        host.suspend()
        waiting = hosts.submit(request("by_loop"))
        wait_for(lambda: calls_of(hosts) == 1)
        host.kill()
        assert reason == waiting.result(LIMIT).ending.reason
    finally:
        hosts.close()


def test_what_began_may_have_acted(hosts: HostPool, third_party: Ledger) -> None:
    """A call that was begun before its host was killed is unsure, also if it had not acted."""
    calls = [request("by_loop", does="waits", port=third_party.port) for _ in range(20)]
    submitted = [hosts.submit(one) for one in calls]
    wait_for(lambda: {one.task_id for one in calls} <= set(third_party.read()))
    shared_host(hosts).kill()
    assert {Reason.UNKNOWN} == {one.result(LIMIT).ending.reason for one in submitted}


@pytest.mark.parametrize("rounds", [2, pytest.param(25, marks=pytest.mark.rest)])
def test_marks_are_true_at_every_moment(third_party: Ledger, rounds: int) -> None:
    """Whatever is told as never begun is not in the ledger, whatever is told as done is."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it with a failure
    moments = random.Random(seed)
    limits = HostLimits(shared_hosts=1, hosts=2, in_threads=200)
    told: dict[str, Reason] = {}
    hosts = HostPool(setup(), limits=limits)
    try:
        for number in range(20 * rounds):
            if number >= rounds and {*told.values()} != {Reason.COMPLETED}:
                break  # at least one kill came in the middle
            requests = [
                request(moments.choice(["by_loop", "by_thread"]), port=third_party.port)
                for _ in range(100)
            ]
            requests += [request("alone", port=third_party.port)]
            least = len(third_party.read()) + (moments.choice([0, 0, 1, 10, 50]) if number else 1)
            submitted = {one.task_id: hosts.submit(one) for one in requests}
            wait_for(partial(_has, third_party, least))
            time.sleep(moments.random() * 0.02 if number else 0)
            for host in processes_of():
                host.kill()
            told |= {name: one.result(LIMIT).ending.reason for name, one in submitted.items()}
    finally:
        hosts.close()
    written = set(third_party.read())
    assert [] == [name for name, reason in told.items() if reason in NOT_BEGUN and name in written]
    completed = {name for name, reason in told.items() if reason is Reason.COMPLETED}
    assert completed == completed & written
    assert set(told.values()) <= {*NOT_BEGUN, *MAY_HAVE_ACTED, Reason.COMPLETED}
    assert completed < set(told)


def _has(third_party: Ledger, least: int) -> bool:
    return len(third_party.read()) >= least
