"""What follows is written beside a relay."""

from __future__ import annotations

import pytest

from delta_outbox.workflow_engine.execution.derivation_loop import DerivationLoop


def test_who_asks_learns_what_was_written() -> None:
    """A relay that has nothing to do learns whether something follows, and once more if not."""
    to_write = [True, True]
    loop = DerivationLoop(lambda: bool(to_write) and to_write.pop())
    try:
        assert not loop.nothing_follows()
        assert loop.nothing_follows()
        to_write.append(True)
        assert not loop.nothing_follows()
    finally:
        loop.close()


def test_an_error_reaches_the_relay() -> None:
    """What keeps it from going on is raised in the relay, and nobody waits for it."""

    def step() -> bool:
        raise KeyError

    loop = DerivationLoop(step)
    with pytest.raises(KeyError):
        loop.nothing_follows()
    with pytest.raises(KeyError):
        loop.check()
    loop.close()
