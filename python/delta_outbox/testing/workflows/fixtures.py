"""pytest fixtures of the kit: `pytest_plugins = ["delta_outbox.testing.workflows.fixtures"]`."""

from __future__ import annotations

import os
import random

import pytest

from delta_outbox.testing.workflows.clock import VirtualClock
from delta_outbox.testing.workflows.troubles import TROUBLES, Trouble

SEED = "OUTBOX_WORKFLOW_SEED"


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """Return a clock that passes only when the test says so."""
    return VirtualClock()


@pytest.fixture(params=TROUBLES, ids=[one.name.lower() for one in TROUBLES])
def trouble(request: pytest.FixtureRequest) -> Trouble:
    """Return each trouble that a third party may have with one call."""
    chosen: Trouble = request.param
    return chosen


@pytest.fixture
def workflow_random() -> random.Random:
    """Return a source of random numbers; its seed is printed if the test fails.

    The environment variable OUTBOX_WORKFLOW_SEED repeats a run.
    """
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**9))
    print(f"{SEED}={seed}")  # noqa: T201 - pytest shows it beside a failure
    return random.Random(seed)
