"""A publish deadline holds on its way to a worker, whatever happens to the system clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_outbox.relay.publish.deadline import Deadline

STEP = 600.0  # seconds


@pytest.mark.parametrize("step", [STEP, -STEP])
def test_a_step_of_the_system_clock_moves_no_deadline(step):
    """A clock that is set while a claim is on its way neither ends it nor prolongs it."""
    given = Deadline.after(60)
    told_before_the_step = replace(given, system=given.system - step)
    assert 0 < told_before_the_step.seconds_left() <= 60


@pytest.mark.parametrize("step", [STEP, -STEP])
def test_another_machine_goes_by_the_system_clock(step):
    """The monotonic clocks of two machines have nothing in common."""
    given = Deadline.after(60)
    told_elsewhere = replace(given, machine="another", monotonic=given.monotonic + step)
    assert 0 < told_elsewhere.seconds_left() <= 60


def test_a_deadline_passes():
    """Once it has come, less than nothing is left."""
    assert Deadline.after(-1).seconds_left() <= -1
