"""Hosts are started with the workflows in force, and stay where later ones are of other code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.unit.workflow_engine.derived_log import NOW
from tests.unit.workflow_engine.hosts.host_requests import AUTHOR, LIMIT, request, setup

from delta_outbox.core.clock import SystemClock
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.railway.modules import load
from delta_outbox.railway.routing import Routing
from delta_outbox.railway.rows import Rows, joined, rows_of
from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.execution.code_check import WorkflowsDiffer
from delta_outbox.workflow_engine.execution.hosts_in_force import RETRY_SECONDS, HostsInForce
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.hosts.places import HostLimits
from delta_outbox.workflow_engine.hosts.pool import HostPool


def rows(*, alone: str | None = None) -> Rows:
    """Return the rows of all workflows; that of `alone` may be of other code."""
    found = joined(rows_of(one) for one in load(["misbehaving"], AUTHOR))
    changed: list[Any] = [
        {**row, "hash": alone} if alone and row["workflow"] == "alone" else row
        for row in found["railway_workflows"]
    ]
    return {**found, "railway_workflows": changed}


def plan(number: int, its: Rows) -> NumberedWrite:
    """Return a plan of `workflows`."""
    return NumberedWrite(number=number, plan={"rows": its}, planned_at=NOW)


@pytest.fixture
def in_force() -> Iterator[HostsInForce]:
    """Return hosts that are ended afterwards."""
    made = HostsInForce(setup(), clock=SystemClock())
    yield made
    made.close()


def followed(in_force: HostsInForce, newest: NumberedWrite) -> Plan | None:
    """Follow a plan until it is taken or refused."""
    until = time.monotonic() + LIMIT
    before = in_force.problem
    while time.monotonic() < until:
        taken = in_force.follow(newest)
        if taken is not None or in_force.problem != before:
            return taken
        time.sleep(0.01)
    raise AssertionError("it is neither taken nor refused")


def test_the_first_workflows_must_be_those_of_the_code(in_force: HostsInForce) -> None:
    """A relay whose code is another one does not start."""
    with pytest.raises(WorkflowsDiffer, match="not those of the code: alone"):
        in_force.follow(plan(1, rows(alone="another")))
    assert in_force.hosts is None


def test_later_workflows_stop_nothing(in_force: HostsInForce) -> None:
    """Hosts of the code go on beside workflows of other code, and run what they can judge: what
    began before, and workflows that have not changed. The problem is told until it is over.
    """
    assert in_force.follow(plan(1, rows())) is not None
    taken, changed = in_force.taken, rows(alone="another")
    assert taken is not None
    assert followed(in_force, plan(2, changed)) is None
    assert in_force.taken is taken
    assert "not those of the code: alone" in str(in_force.problem)
    for name, number, expected in (("alone", 1, True), ("alone", 2, False), ("by_loop", 2, True)):
        facts = taken.hosts.tasks[f"{name}/{name}"]
        assert expected == taken.may_run(number, Routing(changed, name), facts)
    assert followed(in_force, plan(3, rows())) is not None
    assert in_force.problem is None
    assert in_force.taken is not None
    assert 3 == in_force.taken.number
    assert in_force.hosts is not taken.hosts


def test_the_first_workflows_may_come_later(in_force: HostsInForce) -> None:
    """A relay that has begun without workflows is not stopped by such of other code."""
    assert in_force.follow(None) is None
    assert followed(in_force, plan(1, rows(alone="another"))) is None
    assert in_force.hosts is None


@pytest.mark.parametrize("fails", [OSError(24, "Too many open files"), RuntimeError("no thread")])
def test_a_machine_without_room_for_other_hosts_stops_nothing(fails: Exception) -> None:
    """Where hosts for later workflows cannot be started, whatever it is, those that run go on; it
    is tried again after a while.
    """
    clock, starts = ManualClock(NOW), list[Exception | None]([None, fails, None])

    def start(of: Setup) -> HostPool:
        error = starts.pop(0)
        if error is not None:
            raise error
        return HostPool(of, limits=HostLimits(shared_hosts=1))

    in_force = HostsInForce(setup(), clock=clock, start_hosts=start)
    try:
        assert in_force.follow(plan(1, rows())) is not None
        first = in_force.hosts
        assert followed(in_force, plan(2, rows())) is None
        assert str(fails) in str(in_force.problem)
        assert in_force.hosts is first
        assert in_force.follow(plan(2, rows())) is None
        assert [None] == starts
        clock.sleep(RETRY_SECONDS)
        assert followed(in_force, plan(2, rows())) is not None
        assert in_force.problem is None
    finally:
        in_force.close()


def test_hosts_that_are_not_taken_are_ended() -> None:
    """Whatever goes wrong while new hosts are held against the rows, they do not stay."""
    made = list[HostPool]()

    def start(of: Setup) -> HostPool:
        made.append(HostPool(of, limits=HostLimits(shared_hosts=1)))
        made[0].tasks = cast("Any", None)
        return made[0]

    in_force = HostsInForce(setup(), clock=SystemClock(), start_hosts=start)
    try:
        with pytest.raises(AttributeError):
            in_force.follow(plan(1, rows()))
        assert made[0].is_closed
    finally:
        in_force.close()
        for one in made:
            one.close()


def test_what_former_hosts_run_ends_with_the_others(in_force: HostsInForce) -> None:
    """A call goes on in hosts that others have replaced; it is cut when all are closed."""
    assert in_force.follow(plan(1, rows())) is not None
    assert in_force.hosts is not None
    call = in_force.hosts.submit(request("by_loop", does="waits"))
    assert followed(in_force, plan(2, rows())) is not None
    assert not call.done()
    in_force.close()
    assert call.done()
    assert "no answer: it was cancelled" == str(call.result().ending.error)
