"""Twenty moments of each command in which it is told to end, or killed."""

from __future__ import annotations

import random
import signal

import pytest
from tests.faults.interrupts.test_interrupts import COMMANDS, interrupt, run

from delta_outbox.runtime.home import Home

pytestmark = pytest.mark.local

MOMENTS = 20
FIRST = 0.1  # seconds
LAST = 45.0  # seconds; a command that is over by then has nothing to be interrupted


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return the home of an outbox that no other test uses."""
    root = tmp_path_factory.mktemp("interrupts") / "home"
    made = run(["init", "--json"], root)
    assert 0 == made.code, made.errors
    return Home(root=root)


@pytest.mark.parametrize("name", COMMANDS)
def test_twenty_moments(own_home: Home, name: str):
    """At twenty moments from 0.1 s on, more of them early, an interrupt of a command leaves no
    process and a free home.
    """
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it with a failure
    chance = random.Random(seed)
    for step in range(MOMENTS):
        after = FIRST * (LAST / FIRST) ** (step / (MOMENTS - 1)) * chance.uniform(0.9, 1.1)
        number = chance.choice([signal.SIGINT, signal.SIGTERM])
        interrupt(own_home, name, after=after, number=number)
