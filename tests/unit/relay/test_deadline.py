"""A publish deadline holds on its way to a worker, whatever happens to the system clock."""

from __future__ import annotations

import time

import pytest

from delta_outbox.relay import deadline as module
from delta_outbox.relay.deadline import Deadline

STEP = 600.0  # seconds


@pytest.mark.parametrize("step", [STEP, -STEP])
def test_a_step_of_the_system_clock_moves_no_deadline(monkeypatch, step):
    """A clock that is set while a claim is on its way neither ends it nor prolongs it."""
    given = Deadline.after(60)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + step)
    assert 50 < given.seconds_left() <= 60


def test_another_machine_goes_by_the_system_clock(monkeypatch):
    """The monotonic clocks of two machines have nothing in common."""
    given = Deadline.after(60)
    monkeypatch.setattr(module, "this_machine", lambda: "another")
    here = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: here() + STEP)
    assert 50 < given.seconds_left() <= 60


def test_a_deadline_passes():
    """Once it has come, less than nothing is left."""
    assert Deadline.after(-1).seconds_left() <= -1
